"""Searches along first parents for the commit that brought a bug to a branch."""

from dataclasses import dataclass

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.findings.bisect import Question
from windlass_fuzz.findings.dating import Dating
from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.on_branches.watch import BranchWatch
from windlass_fuzz.findings.record import Finding, Origin
from windlass_fuzz.findings.sightings import with_origin


@dataclass(slots=True)
class BranchSearch:
    """The searches of one run, for bugs whose known origins do not tell since when a branch has
    them.
    """

    dating: Dating
    watch: BranchWatch

    async def run(self) -> None:
        """Dates live findings on their branches, while there is time."""
        for finding in list(self.dating.catalogue.findings.values()):
            if not finding.live:
                continue
            for name, failing in await self.watch.undated(finding):
                if self.dating.clock.now_ms() >= self.dating.deadline_ms:
                    return
                try:
                    await self._search(finding.key, name, failing)
                except WindlassError as error:
                    self.dating.notify(f"{finding.key}: not dated on {name}: {error}")

    async def _search(self, key: str, branch: str, failing: str) -> None:
        finding = self.dating.catalogue.findings[key]
        question = await self._question(finding, failing)
        if question is None:
            return
        origin = await self.dating.bisector.origin(failing, question)
        entry = next(one for one in finding.branches if one.name == branch)
        dated = await self.watch.searched(entry, origin)

        def change(known: Finding | None) -> Finding:
            now = known or finding
            branches = [dated if one == entry else one for one in now.branches]
            after = msgspec.structs.replace(now, branches=branches)
            return _with_another_time(after, origin) if entry.back else after

        self.dating.catalogue.put(await self.dating.store.update(key, change))

    async def _question(self, finding: Finding, failing: str) -> Question | None:
        """Returns the search for an input that fails with this commit."""
        for one in inputs_of(finding):
            path = self.dating.scratch / f"branch-{one.name}"
            if not await self.dating.store.fetch_input(finding, path, one.name):
                continue
            question = self.dating.question(path, one, finding)
            if await self.dating.bisector.answer(failing, question) == "fails":
                return question
        return None


def _with_another_time(known: Finding, origin: Origin) -> Finding:
    """Adds the origin of a bug that came back to a branch, unless it is known."""
    if any(one.first_bad == origin.first_bad for one in known.origins):
        return known
    return with_origin(known, origin)
