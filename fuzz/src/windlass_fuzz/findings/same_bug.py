"""Decides from sources and builds whether two failures are one bug."""

from collections.abc import Collection
from dataclasses import dataclass

from windlass_fuzz.engines.frames import line_in
from windlass_fuzz.engines.sanitizers import sanitizer_report
from windlass_fuzz.engines.signature import (
    Signature,
    innermost,
    is_surely_same,
    places_of,
)
from windlass_fuzz.findings.bisect import Bisector, Question
from windlass_fuzz.findings.judge import Observation
from windlass_fuzz.findings.record import Finding


@dataclass(frozen=True, slots=True)
class SameBug:
    """What the history says about failures of one function, or of two."""

    bisector: Bisector

    async def was_renamed(self, finding: Finding, shown: Signature, commit: str) -> bool:
        """Returns whether each function is defined only in the commit in which it fails."""
        there, here = innermost(finding.title), innermost(shown.title)
        mirror = self.bisector.mirror
        if not there or not here or not await mirror.has(finding.found_in):
            return False
        moved = [(finding.found_in, there, here), (commit, here, there)]
        return all(
            [
                await mirror.defines(at, its_own) and not await mirror.defines(at, other)
                for at, its_own, other in moved
            ]
        )

    async def is_elsewhere(
        self, finding: Finding, before: str, shown: Signature, commit: str
    ) -> bool:
        """Returns whether an input now fails in another function, and neither function was renamed.

        The function where it failed `before` still exists, and the other one existed then.
        """
        there, here = innermost(before), innermost(shown.title)
        callers = any(there == innermost(f" in {one}") for one in shown.frames) or any(
            here == innermost(f" in {one}") for one in finding.frames
        )  # one was inlined into the other, or not
        same = is_surely_same(shown, finding.names) or not there or not here
        earlier = await self.earlier(finding, commit)
        if same or callers or not earlier:
            return False
        mirror = self.bisector.mirror
        return await mirror.defines(earlier, here) and await mirror.defines(commit, there)

    async def was_behind(
        self, finding: Finding, shown: Signature, seen: Observation | None, commit: str
    ) -> bool:
        """Returns whether a failure was hidden behind a finding of the same function.

        The line that failed is gone, and the one that fails now, in another way, was there before.
        """
        earlier = await self.earlier(finding, commit)
        if shown.title in finding.names or seen is None or not earlier:
            return False
        mirror, at = self.bisector.mirror, finding.shown_in
        then = _line_of(finding.output, places_of(finding.names))
        now = _line_of(seen.output, places_of([shown.title]))
        if then is None or now is None or not await mirror.has(at):
            return False
        failed, fails = await mirror.line(at, *then), await mirror.line(commit, *now)
        if not failed or not fails or await mirror.has_text(commit, failed):
            return False
        return await mirror.has_text(earlier, fails)

    async def came_together(self, finding: Finding, question: Question) -> bool:
        """Returns whether the commit that brought a finding brought what this input shows, too."""
        for origin in finding.origins:
            other = origin.combination != self.bisector.combination
            if other or origin.gone_in is not None or origin.last_good is None:
                continue
            ends = (origin.first_bad, "fails"), (origin.last_good, "fine")
            if all([await self.bisector.answer(at, question) == said for at, said in ends]):
                return True
        return False

    async def earlier(self, finding: Finding, commit: str) -> str:
        """Returns the newest other commit that showed a finding, if the repository has it."""
        found = next((one for one in reversed(finding.seen_in) if one != commit), "")
        return found if found and await self.bisector.mirror.has(found) else ""


def _line_of(output: str, places: Collection[str]) -> tuple[str, int] | None:
    report = sanitizer_report(output)
    return None if report is None else line_in(report.text, places)
