"""Searches for the commits that ended bugs, as `bisect.py` searches for those that brought them.

The commit that ran all inputs fine is only the one that was fuzzed. A build has the bug if one
input shows it, and is free of it if every input runs fine with every combination that it broke.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import structs

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.findings.bisect import Question
from windlass_fuzz.findings.dating import Dating
from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.judge import Outcome
from windlass_fuzz.findings.record import Finding, Fix


@dataclass(slots=True)
class FixSearch:
    """The searches of one run; `datings` have the builds of each combination."""

    datings: Mapping[str, Dating]
    _questions: dict[tuple[str, str], list[Question]] = field(default_factory=dict)

    async def run(self, findings: Iterable[Finding]) -> None:
        """Searches for fixes that are not known exactly, while there is time."""
        for finding in findings:
            for commit in finding.fixes:
                if any(one.late() for one in self.datings.values()):
                    return
                try:
                    await self._search(finding, commit)
                except WindlassError as error:
                    self._main.notify(f"{finding.key}: could not search for its fix: {error}")

    @property
    def _main(self) -> Dating:
        """Returns the one whose builds the search walks over."""
        return next(iter(self.datings.values()))

    async def _search(self, finding: Finding, commit: str) -> None:
        dating = self._main
        known = finding.ends.get(commit)
        bisector = dating.bisector
        if known is not None and not (known.cut_short or await bisector.could_narrow(known)):
            return

        async def gone(other: str) -> Outcome:
            return await self._gone(finding, other)

        found = await dating.bisector.fix(commit, dating.deadline_ms, gone)
        if known is not None and not _is_better(known, found):
            return
        after = await dating.store.update(
            finding.key, lambda now: _ended(now or finding, found, commit)
        )
        dating.catalogue.put(after)

    async def _gone(self, finding: Finding, commit: str) -> Outcome:
        """Returns "fails" for a build without the bug, and "fine" for one that shows it.

        Another failure may hide the bug, so it says nothing.
        """
        said: Outcome = "unclear"
        for name, dating in self.datings.items():
            for question in await self._asked(finding, name, dating):
                result = await dating.bisector.run(commit, question)
                if result is not None and result.shown and question.fits(result):
                    return "fine"
                if result is None or not result.fine:
                    return "unclear"
                said = "fails"
        return said

    async def _asked(self, finding: Finding, name: str, dating: Dating) -> list[Question]:
        """Returns what to ask builds of a combination: the inputs that broke it."""
        if (finding.key, name) not in self._questions:
            inputs = [
                one for one in inputs_of(finding)
                if (not one.combinations or name in one.combinations) and not one.masked_by
            ]  # fmt: skip
            self._questions[finding.key, name] = await dating.questions(finding, inputs)
        return self._questions[finding.key, name]


def _is_better(known: Fix, found: Fix) -> bool:
    """Returns whether a search replaces an earlier result; one that was not cut short may."""
    if found.width == known.width:
        return (found.tried, found.cut_short) != (known.tried, known.cut_short)
    return found.width < known.width or (known.cut_short and not found.cut_short)


def _ended(known: Finding, found: Fix, commit: str) -> Finding:
    """Returns the record with a fix, and without those of earlier closings."""
    ends = {at: one for at, one in known.ends.items() if at in known.fixes}
    return structs.replace(known, ends={**ends, commit: found} if commit in known.fixes else ends)
