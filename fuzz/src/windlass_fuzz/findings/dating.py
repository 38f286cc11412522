"""Dates findings: which origin a sighting belongs to, and searches that add or narrow origins."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.ports.clock import Clock
from windlass_fuzz.engines.signature import Signature
from windlass_fuzz.findings.bisect import Bisector, Question
from windlass_fuzz.findings.evidence import Where, checker_for, fails_with, inputs_of
from windlass_fuzz.findings.judge import Slow, tries_needed
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.record import Finding, KeptInput, Origin
from windlass_fuzz.findings.sightings import ANYWHERE, seen_again, with_origin
from windlass_fuzz.findings.store import FindingStore

Change = Callable[[Finding | None, Finding], Finding]


@dataclass(slots=True)
class Dating:
    """The searches of one run, which end at `deadline_ms`; `inputs` are kept per finding."""

    bisector: Bisector
    store: FindingStore
    catalogue: Catalogue
    scratch: Path
    clock: Clock
    deadline_ms: int
    inputs: int
    notify: Callable[[str], None] = lambda _: None
    where: Where = ANYWHERE

    def question(
        self, path: Path, one: KeptInput, finding: Finding, known: Finding | None = None
    ) -> Question:
        """Returns what a search asks of each build; `known` is the earlier record of the
        finding.
        """
        names = finding.names | (known.names if known else frozenset())
        tries, slow = self.bisector.tries_of(one), finding.kind in Slow
        needed = tries_needed(one.shown, one.tried)
        how = Signature(finding.kind, finding.title)
        return Question(
            path, one.name, tries, slow, self.deadline_ms, names, needed, how, checker_for(one)
        )

    async def date(self, known: Finding | None, finding: Finding, question: Question) -> Change:
        """Returns how the sighting changes the record, with an origin if one has to be added.

        A finding without an origin is better than none, so a search may fail.
        """
        try:
            if known is not None and known.live:
                place = await self._origin_of(known, question)
                if place is not None:
                    return self._seen_with(place)
            origin = await self.bisector.origin(finding.found_in, question)
            if known is not None and known.origins and not await self._came_back(known, origin):
                last = len(known.origins) - 1
                return self._seen_with(last, None if known.live else origin)
        except WindlassError as error:
            self.notify(f"could not find its origin: {error}")
            return self._seen_with(0)
        return self._seen_with(None, origin)

    async def _origin_of(self, known: Finding, question: Question) -> int | None:
        """Returns the origin of an open finding that an input belongs to; None if to none of
        them.
        """
        alive = [n for n, one in enumerate(known.origins) if one.gone_in is None]
        for place in reversed(alive):
            if known.origins[place].combination != self.where.combination:
                return place  # that build says nothing about another combination's search
            answer = await self.bisector.answer(known.origins[place].first_bad, question)
            if answer != "fine":
                return place
        return None

    async def _came_back(self, known: Finding, origin: Origin) -> bool:
        """Returns whether the bug came back, rather than still being there.

        It came back if the last origin ended before this one began, on any branch, or if it has not
        ended and an earlier build runs this input fine.
        """
        if not known.origins:
            return True
        last = known.origins[-1]
        if last.gone_in is None:
            return origin.last_good is not None and origin.first_bad != last.first_bad
        ends = [last.gone_in, *(one.fixed_in for one in known.branches if one.fixed_in)]
        began = origin.line_bad or origin.first_bad  # a merge may bring it from before the fix
        return any([await self.bisector.comes_after(end, began) for end in ends])

    def _seen_with(self, place: int | None, origin: Origin | None = None) -> Change:
        """Returns the change: the sighting, with its origin added or replacing one."""

        def change(stored: Finding | None, new: Finding) -> Finding:
            if place is not None:
                inputs = [msgspec.structs.replace(one, origin=place) for one in new.inputs]
                new = msgspec.structs.replace(new, inputs=inputs)
            after = seen_again(stored, new, self.inputs)
            if place is None and origin is not None:
                return with_origin(after, origin)
            if place is not None and place < len(after.origins):
                old = after.origins[place]
                better = old if origin is None or old.width <= origin.width else origin
                alive = msgspec.structs.replace(better, gone_in=None)
                return with_origin(after, alive, place=place)
            return after

        return change

    async def date_again(self, commit: str) -> None:
        """Searches again for inexact origins if there are builds that may help.

        Also for those that are about commits which no branch contains any more.
        """
        for finding in list(self.catalogue.findings.values()):
            if self.clock.now_ms() >= self.deadline_ms:
                return
            if not finding.live or not finding.origins:
                continue
            place = len(finding.origins) - 1
            origin = finding.origins[place]
            if origin.combination != self.where.combination:
                continue
            try:
                left = await self.bisector.mirror.is_left(origin.first_bad)
                wanted = left or await self.bisector.could_narrow(origin)
                if origin.gone_in is None and wanted:
                    await self._date_again(finding, place, commit, left)
            except WindlassError as error:
                self.notify(f"{finding.key}: could not search for its origin again: {error}")

    async def date_reopened(self, keys: list[str], commit: str) -> None:
        """Searches for the new origin of findings whose known inputs fail again."""
        for key in keys:
            finding = self.catalogue.findings[key]
            failing = [one for one in inputs_of(finding) if fails_with(one, self.where)]
            one = failing[0] if failing else None
            if one is None:
                continue
            path = self.scratch / f"back-{one.name}"
            if not await self.store.fetch_input(finding, path, one.name):
                continue
            question = self.question(path, one, finding)
            try:
                origin = await self.bisector.origin(commit, question)
                back = await self._came_back(finding, origin)
            except WindlassError as error:
                self.notify(f"{key}: could not find its origin: {error}")
                continue
            place = None if back else len(finding.origins) - 1
            after = await self.store.update(
                key,
                lambda known, p=place, o=origin, f=finding: with_origin(known or f, o, place=p),  # type: ignore[misc]
            )
            self.catalogue.put(after)

    async def _date_again(self, finding: Finding, place: int, commit: str, left: bool) -> None:
        """Makes one new search from a commit that fails, and takes the better result.

        A search that had no time to try all builds continues where it stopped. If the old result is
        about commits that a forced push has `left` behind, any result is better.
        """
        old = finding.origins[place]
        names = {one.name: one for one in inputs_of(finding)}
        one = names.get(old.input) or names[finding.input]
        path = self.scratch / f"dated-{one.name}"
        if not await self.store.fetch_input(finding, path, one.name):
            return
        question = self.question(path, one, finding)
        bad = await self._start_of(old, commit, left, question)
        if bad is None:
            return
        new = await self.bisector.origin(bad, question)
        further = old.cut_short and new.first_bad != old.first_bad and new.width == old.width
        if left or further or new.width < old.width:
            after = await self.store.update(
                finding.key, lambda known: with_origin(known or finding, new, place=place)
            )
            self.catalogue.put(after)

    async def _start_of(
        self, old: Origin, commit: str, left: bool, question: Question
    ) -> str | None:
        """Returns the commit that a new search begins with; None if none of these fails."""
        if left:
            commits = [commit]
        elif old.cut_short and old.last_good is None:
            commits = [old.first_bad, commit]
        else:
            commits = [commit, old.first_bad]
        for one in dict.fromkeys(commits):
            if await self._fails(one, question):
                return one
        return None

    async def _fails(self, commit: str, question: Question) -> bool:
        return await self.bisector.answer(commit, question) == "fails"
