"""From files that broke a build to findings: told apart, reproduced, made small, dated."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.fuzzing.chain import Misshapen
from windlass.fuzzing.engines.engine import Engine, Verdict
from windlass.fuzzing.findings.judging import Judge, Reproduced, reproduce
from windlass.fuzzing.findings.minimise import Shows, minimise
from windlass.fuzzing.findings.record import OUTPUT, Finding, closed, excerpt_of, seen_again
from windlass.fuzzing.findings.shelf import Shelf
from windlass.fuzzing.findings.signature import key_of
from windlass.ports.clock import Clock

MOST_LOOKED_AT: Final = 500
SHRINK_MS: Final = 60_000  # for one finding, if there is time
LEAST_SHRINK_MS: Final = 5_000  # and if there is none: a small input is worth that much
SMALL: Final = 32  # bytes, which need no minimiser of an engine: libFuzzer's takes all its time


class Met(NamedTuple):
    """A failure of this run: its title, and the smallest input that shows it."""

    title: str
    path: Path
    verdict: Verdict


@dataclass(slots=True)
class Triage:
    """What happens to the failures of one run; it ends by `deadline_ms`, or soon after."""

    engine: Engine
    engine_name: str
    binaries: Path
    judge: Judge
    shelf: Shelf
    scratch: Path
    clock: Clock
    deadline_ms: int
    told: Callable[[str], None] = lambda _: None
    tries: int = 5

    async def run(self, crashes: Path, commit: str) -> list[Finding]:
        """All failures of a folder, as findings of a commit."""
        found = []
        for met in await self._tell_apart(crashes):
            self.told(f"looking into {met.title}")
            try:
                finding = await self._file(met, commit)
            except Misshapen as error:
                self.told(str(error))
                continue
            if finding is not None:
                found.append(finding)
        return found

    async def recheck(self, commit: str) -> list[Finding]:
        """Close open findings of earlier commits that this one no longer shows."""
        still_open = [f async for f in self.shelf.all(self.told) if f.state == "open"]
        gone = [f for f in still_open if await self._is_gone(f, commit)]
        return [await self._close(finding, commit) for finding in gone]

    async def _close(self, finding: Finding, commit: str) -> Finding:
        now = self.clock.now_ms()
        return await self.shelf.update(
            finding.key, lambda known: closed(known or finding, commit, now)
        )

    async def _tell_apart(self, crashes: Path) -> list[Met]:
        """One for each title, the smallest file of it."""
        files = sorted((p for p in crashes.iterdir() if p.is_file()), key=_by_size)
        met: dict[str, Met] = {}
        for path in files[:MOST_LOOKED_AT]:
            if self._late() and met:
                break
            verdict = await self.engine.judge(path)
            if verdict.kind == "bug" and verdict.title not in met:
                met[verdict.title] = Met(verdict.title, path, verdict)
        return list(met.values())

    async def _file(self, met: Met, commit: str) -> Finding | None:
        again = await reproduce(self.engine, met.path, met.title, self.tries)
        if again.shown == 0:
            self.told(f"not seen again in {again.tried} runs, let go: {met.title}")
            return None
        small = await self._shrink(met)
        finding = await self._describe(met, small, again, commit)
        return await self.shelf.update(finding.key, lambda known: seen_again(known, finding))

    async def _shrink(self, met: Met) -> Path:
        """By the engine's own means, then by delta debugging, as far as time allows."""
        left = self.deadline_ms - self.clock.now_ms()
        budget = max(min(left, SHRINK_MS), LEAST_SHRINK_MS)
        until = self.clock.now_ms() + budget
        best = met.path
        own = self.scratch / f"own-{key_of(met.title)}{met.path.suffix}"
        large = best.stat().st_size > SMALL
        if large and await self.engine.shrink(best, own, budget // 2):
            best = own if await self._shows(own, met.title) else best
        data = await minimise(best.read_bytes(), self._shows_until(until, met))
        small = self.scratch / f"{key_of(met.title)}{met.path.suffix}"
        small.write_bytes(data)
        return small

    def _shows_until(self, until_ms: int, met: Met) -> Shows:
        candidate = self.scratch / f"candidate-{key_of(met.title)}{met.path.suffix}"

        async def shows(data: bytes) -> bool:
            if self.clock.now_ms() >= until_ms:
                return False
            candidate.write_bytes(data)
            return await self._shows(candidate, met.title)

        return shows

    async def _shows(self, path: Path, title: str) -> bool:
        verdict = await self.engine.judge(path)
        return verdict.kind == "bug" and verdict.title == title

    async def _describe(self, met: Met, small: Path, again: Reproduced, commit: str) -> Finding:
        key = key_of(met.title)
        data = small.read_bytes()
        verdict = again.verdict or met.verdict
        finding = Finding(
            key=key, title=met.title, engine=self.engine_name, command=self._command(key, small),
            input=await self.shelf.put_input(key, data, met.path.suffix), size=len(data),
            excerpt=excerpt_of(data), shown=again.shown, tried=again.tried,
            output=verdict.output[-OUTPUT:], found_in=commit, found_at_ms=self.clock.now_ms(),
        )  # fmt: skip
        return await self._date(finding, small)

    async def _date(self, finding: Finding, small: Path) -> Finding:
        """Who brought it in; a finding without that is better than none."""
        try:
            first, good = await self.judge.origin(finding.found_in, small, finding.title)
        except WindlassError as error:
            self.told(f"its origin could not be found: {error}")
            return finding
        subject = "" if first is None else await self.judge.subject(first)
        return msgspec.structs.replace(
            finding, introduced_by=first, last_good=good, old=first != finding.found_in,
            introduced_subject=subject,
        )  # fmt: skip

    async def _is_gone(self, finding: Finding, commit: str) -> bool:
        """Only a commit that builds upon the bad one can mend it."""
        if not await self.judge.comes_after(finding.found_in, commit):
            return False
        path = self.scratch / f"again-{finding.input}"
        if not await self.shelf.fetch_input(finding, path):
            return False
        return await self.judge.fails(commit, path, finding.title) is False

    def _command(self, key: str, small: Path) -> list[str]:
        """As a person would type it in the folder of the build, with the input copied there."""
        short = ((str(small), f"{key}{small.suffix}"), (f"{self.binaries}/", "./"))
        words = self.engine.command(small)
        for long, instead in short:
            words = [word.replace(long, instead) for word in words]
        return words

    def _late(self) -> bool:
        return self.clock.now_ms() >= self.deadline_ms


def _by_size(path: Path) -> tuple[int, str]:
    return path.stat().st_size, path.name
