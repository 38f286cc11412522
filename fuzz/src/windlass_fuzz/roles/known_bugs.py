"""What the bucket's findings say about a change: a fixed bug that it brings back, bugs it fixes.

Inputs of open findings stay in the bucket: the inputs of a check may end up in public files.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.judge import Reproduction
from windlass_fuzz.findings.record import Finding, KeptInput, binary_of, excerpt_of, shorten
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.trackers.options import issue_options

MAX_INPUTS: Final = 200
MAX_FINDINGS: Final = 20  # maximum findings that are run

# Runs the input of a finding with one of the two builds; None if that is missing.
RunWith = Callable[[Finding, Literal["base", "change"]], Awaitable[Reproduction | None]]


class FixedFinding(msgspec.Struct, kw_only=True):
    """A finding whose input fails with the base and runs fine with the change."""

    key: str
    title: str


class KnownBugs:
    """The findings in a bucket; a bucket that does not answer stops no check."""

    def __init__(self, solver: Solver, pipeline: Pipeline, notify: Callable[[str], None]) -> None:
        self._solver = solver
        self._pipeline = pipeline
        self._store = FindingStore(pipeline)
        self._notify = notify

    async def fetch_closed_inputs(self, folder: Path) -> int:
        """Copies inputs of closed findings to a folder; returns how many."""
        count = 0
        try:
            async for finding, one in self._closed():
                path = folder / f"{finding.key}-{one.name}"
                count += await self._store.fetch_input(finding, path, one.name)
        except WindlassError as error:
            self._notify(f"fuzzing without the inputs of closed findings: {error}")
        return count

    async def brought_back(self, run: RunWith, until_ms: int, scratch: Path) -> Finding | None:
        """Returns the first closed finding that the change shows again, as its build shows it.

        The base runs the input fine.
        """
        try:
            async for finding, one in self._closed():
                if self._pipeline.now_ms() >= until_ms:
                    return None
                if not await self._store.fetch_input(finding, scratch, one.name):
                    continue
                known = shown_by(finding, one, scratch.read_bytes())
                after = await run(known, "change")
                if after is None or not 0 < after.shown == after.tried:
                    continue
                before = await run(known, "base")
                if before is None or not before.shown:
                    return _as_it_ran(known, after)
        except WindlassError as error:
            self._notify(f"cannot tell whether fixed bugs are back: {error}")
        return None

    async def fixed(self, run: RunWith, until_ms: int) -> list[FixedFinding]:
        """Returns what a change fixes, without findings whose issues are private."""
        options = issue_options(self._solver.issues)
        fixed: list[FixedFinding] = []
        tried = 0
        try:
            async for finding in self._store.all(self._notify):
                private = options is not None and options.is_private(finding)
                late = tried >= MAX_FINDINGS or self._pipeline.now_ms() >= until_ms
                if late or private or not finding.live:
                    continue
                tried += 1
                before, after = await run(finding, "base"), await run(finding, "change")
                if before is not None and before.shown and after is not None and after.fine:
                    fixed.append(FixedFinding(key=finding.key, title=finding.title))
        except WindlassError as error:
            self._notify(f"cannot tell what the change fixes: {error}")
        return fixed

    async def _closed(self) -> AsyncIterator[tuple[Finding, KeptInput]]:
        """Yields the inputs of closed findings, the latest finding and its smallest input first."""
        found = [one async for one in self._store.all(self._notify) if one.state == "closed"]
        found.sort(key=lambda one: one.found_at_ms, reverse=True)
        pairs = [
            (finding, one)
            for finding in found
            for one in sorted(inputs_of(finding), key=lambda kept: kept.name != finding.input)
        ]
        for pair in pairs[:MAX_INPUTS]:
            yield pair


def shown_by(finding: Finding, one: KeptInput, data: bytes) -> Finding:
    """Returns a finding with another of its inputs as the representative."""
    return msgspec.structs.replace(
        finding, input=one.name, size=one.size, excerpt=excerpt_of(data), binary=binary_of(data)
    )


def _as_it_ran(finding: Finding, ran: Reproduction) -> Finding:
    """Returns a closed finding as an open one that these runs have shown."""
    seen = "" if ran.last is None else ran.last.output
    titles = [one.title for one in ran.signatures] or [finding.title]
    return msgspec.structs.replace(
        finding, title=titles[0], state="open", shown=ran.shown, tried=ran.tried,
        output=shorten(seen), output_of=finding.input, closed_in=None, closed_by="", closed_why="",
        origins=[], introduced_by=None, last_good=None, suspects=[], branches=[], moments={},
    )  # fmt: skip
