"""Turns inputs that broke a build into findings: groups, reproduces, minimises and bisects them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.fuzzing.engines.engine import Engine, Verdict
from windlass.fuzzing.engines.signature import key_of
from windlass.fuzzing.findings.bisect import Bisector, Reproduction, reproduce
from windlass.fuzzing.findings.minimise import StillFails, minimise
from windlass.fuzzing.findings.record import OUTPUT, Finding, excerpt_of, mark_closed, seen_again
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.state.state_file import UnreadableState
from windlass.ports.clock import Clock

MOST_FILES: Final = 500
SHRINK_MS: Final = 60_000  # per finding, if there is time
LEAST_SHRINK_MS: Final = 5_000  # per finding, even if the deadline has passed
# Bytes. Smaller inputs skip the engine's minimiser: libFuzzer's always uses all its time.
SMALL: Final = 32


class Failure(NamedTuple):
    """A failure of this run: its title, and the smallest input that shows it."""

    title: str
    path: Path
    verdict: Verdict


@dataclass(slots=True)
class Triage:
    """Handles the failures of one run; ends at `deadline_ms` or soon after."""

    engine: Engine
    engine_name: str
    binaries: Path
    bisector: Bisector
    store: FindingStore
    scratch: Path
    clock: Clock
    deadline_ms: int
    notify: Callable[[str], None] = lambda _: None
    tries: int = 5

    async def run(self, crashes: Path, commit: str) -> list[Finding]:
        """Turns all failures in a folder into findings of a commit."""
        found = []
        for failure in await self._group_by_title(crashes):
            self.notify(f"triaging {failure.title}")
            try:
                finding = await self._file(failure, commit)
            except UnreadableState as error:
                self.notify(str(error))
                continue
            if finding is not None:
                found.append(finding)
        return found

    async def recheck(self, commit: str) -> list[Finding]:
        """Closes open findings of earlier commits that this commit no longer shows."""
        still_open = [f async for f in self.store.all(self.notify) if f.state == "open"]
        gone = [f for f in still_open if await self._is_gone(f, commit)]
        return [await self._close(finding, commit) for finding in gone]

    async def _close(self, finding: Finding, commit: str) -> Finding:
        now = self.clock.now_ms()
        return await self.store.update(
            finding.key, lambda known: mark_closed(known or finding, commit, now)
        )

    async def _group_by_title(self, crashes: Path) -> list[Failure]:
        """Returns one failure per title, with its smallest input."""
        files = sorted((p for p in crashes.iterdir() if p.is_file()), key=_by_size)
        failure: dict[str, Failure] = {}
        for path in files[:MOST_FILES]:
            if self._late() and failure:
                break
            verdict = await self.engine.classify(path)
            if verdict.kind == "bug" and verdict.title not in failure:
                failure[verdict.title] = Failure(verdict.title, path, verdict)
        return list(failure.values())

    async def _file(self, failure: Failure, commit: str) -> Finding | None:
        again = await reproduce(self.engine, failure.path, failure.title, self.tries)
        if again.shown == 0:
            self.notify(f"dropped, not reproduced in {again.tried} runs: {failure.title}")
            return None
        small = await self._shrink(failure)
        finding = await self._describe(failure, small, again, commit)
        return await self.store.update(finding.key, lambda known: seen_again(known, finding))

    async def _shrink(self, failure: Failure) -> Path:
        """Minimises with the engine's own tool, then with delta debugging, as time allows."""
        left = self.deadline_ms - self.clock.now_ms()
        budget = max(min(left, SHRINK_MS), LEAST_SHRINK_MS)
        until = self.clock.now_ms() + budget
        best = failure.path
        own = self.scratch / f"own-{key_of(failure.title)}{failure.path.suffix}"
        large = best.stat().st_size > SMALL
        if large and await self.engine.shrink(best, own, budget // 2):
            best = own if await self._still_fails(own, failure.title) else best
        data = await minimise(best.read_bytes(), self._still_fails_until(until, failure))
        small = self.scratch / f"{key_of(failure.title)}{failure.path.suffix}"
        small.write_bytes(data)
        return small

    def _still_fails_until(self, until_ms: int, failure: Failure) -> StillFails:
        candidate = self.scratch / f"candidate-{key_of(failure.title)}{failure.path.suffix}"

        async def still_fails(data: bytes) -> bool:
            if self.clock.now_ms() >= until_ms:
                return False
            candidate.write_bytes(data)
            return await self._still_fails(candidate, failure.title)

        return still_fails

    async def _still_fails(self, path: Path, title: str) -> bool:
        verdict = await self.engine.classify(path)
        return verdict.kind == "bug" and verdict.title == title

    async def _describe(
        self, failure: Failure, small: Path, again: Reproduction, commit: str
    ) -> Finding:
        key = key_of(failure.title)
        data = small.read_bytes()
        verdict = again.verdict or failure.verdict
        finding = Finding(
            key=key, title=failure.title, engine=self.engine_name,
            command=self._command(key, small),
            input=await self.store.put_input(key, data, failure.path.suffix), size=len(data),
            excerpt=excerpt_of(data), shown=again.shown, tried=again.tried,
            output=verdict.output[-OUTPUT:], found_in=commit, found_at_ms=self.clock.now_ms(),
        )  # fmt: skip
        return await self._find_origin(finding, small)

    async def _find_origin(self, finding: Finding, small: Path) -> Finding:
        """Adds the origin if it can be found; a finding without one is better than none."""
        try:
            first, good = await self.bisector.origin(finding.found_in, small, finding.title)
        except WindlassError as error:
            self.notify(f"could not find its origin: {error}")
            return finding
        subject = "" if first is None else await self.bisector.subject(first)
        return msgspec.structs.replace(
            finding, introduced_by=first, last_good=good, old=first != finding.found_in,
            introduced_subject=subject,
        )  # fmt: skip

    async def _is_gone(self, finding: Finding, commit: str) -> bool:
        """Checks descendants of the bad commit only: no other commit can have fixed the bug."""
        if not await self.bisector.comes_after(finding.found_in, commit):
            return False
        path = self.scratch / f"again-{finding.input}"
        if not await self.store.fetch_input(finding, path):
            return False
        return await self.bisector.fails(commit, path, finding.title) is False

    def _command(self, key: str, small: Path) -> list[str]:
        """Returns the command to run in the build's folder, with the input copied there."""
        short = ((str(small), f"{key}{small.suffix}"), (f"{self.binaries}/", "./"))
        words = self.engine.command(small)
        for long, instead in short:
            words = [word.replace(long, instead) for word in words]
        return words

    def _late(self) -> bool:
        return self.clock.now_ms() >= self.deadline_ms


def _by_size(path: Path) -> tuple[int, str]:
    return path.stat().st_size, path.name
