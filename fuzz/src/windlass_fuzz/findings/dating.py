"""Dates findings: which origin a sighting belongs to, and searches that add or narrow origins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.ports.clock import Clock
from windlass_fuzz.engines.signature import Signature
from windlass_fuzz.findings.bisect import Bisector, Question
from windlass_fuzz.findings.evidence import Where, checker_for, fails_with, inputs_of
from windlass_fuzz.findings.judge import Slow, tries_needed
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.record import Finding, KeptInput, Origin
from windlass_fuzz.findings.sightings import ANYWHERE, compared, seen_again, with_origin
from windlass_fuzz.findings.store import FindingStore

MAX_SEARCHED: Final = 10  # inputs of one finding

Change = Callable[[Finding | None, Finding], Finding]


class Dated(NamedTuple):
    """How a sighting changes the record, the input that decided this, and the last good build."""

    change: Change
    input: Path
    last_good: str | None = None


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

    def late(self) -> bool:
        """Returns whether the time for searches is over."""
        return self.clock.now_ms() >= self.deadline_ms

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
        others = {name for other in self.catalogue.findings.values() for name in other.names}
        return Question(
            path, one.name, tries, slow, self.deadline_ms, names, needed, how, checker_for(one),
            frozenset(others - names),
        )  # fmt: skip

    async def date(
        self, known: Finding | None, finding: Finding, questions: Sequence[Question]
    ) -> Dated:
        """Returns how the sighting changes the record, with an origin if one has to be added.

        A finding without an origin is better than none, so a search may fail.
        """
        first = questions[0].path
        try:
            if known is not None and known.live:
                place = await self._origin_of(known, questions[0])
                if place is not None:
                    good = known.origins[place].last_good
                    return Dated(self._seen_with(place), first, good)
            origin = await self.origin(finding.found_in, questions)
            decided = next(one.path for one in questions if one.name == origin.input)
            if known is not None and known.origins and not await self._came_back(known, origin):
                last = len(known.origins) - 1
                change = self._seen_with(last, None if known.live else origin)
                return Dated(change, decided, known.origins[last].last_good)
        except WindlassError as error:
            self.notify(f"could not find its origin: {error}")
            return Dated(self._seen_with(0), first)
        return Dated(self._seen_with(None, origin), decided, origin.last_good)

    async def origin(self, commit: str, questions: Sequence[Question]) -> Origin:
        """Returns the most exact result of searches from a commit, one for each input.

        Another input only helps if builds refused the first one.
        """
        best = await self.bisector.origin(commit, questions[0])
        for question in questions[1:MAX_SEARCHED]:
            late = self.late()
            if best.exact or not best.unclear or late:
                break
            if not await self._fails(commit, question):
                continue
            other = await self.bisector.origin(commit, question)
            if other.width < best.width and await self._is_of(other, questions[0]):
                best = other
        return best

    async def _is_of(self, origin: Origin, question: Question) -> bool:
        """Returns whether nothing speaks against an origin that another input led to."""
        if await self.bisector.answer(origin.first_bad, question) == "fine":
            return False
        good = origin.last_good
        return good is None or await self.bisector.answer(good, question) != "fails"

    async def compare(self, finding: Finding, last_good: str | None) -> dict[str, str]:
        """Returns how the last good build runs the inputs of a finding, by their names."""
        before: dict[str, str] = {}
        judge = await self.bisector.stored_judge(last_good)
        if judge is None or finding.kind in Slow:
            return before
        for one in inputs_of(finding):
            path = self.scratch / f"before-{one.name}"
            if not one.before and await self.store.fetch_input(finding, path, one.name):
                seen = await judge.look(path)
                before[one.name] = seen.why or seen.outcome
        return before

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
            decided = "" if origin is None else origin.input
            after = seen_again(stored, new, self.inputs, decided)
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
            if self.late():
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

    async def again(self, finding: Finding) -> None:
        """Searches again for the newest origin of a finding, whatever it is."""
        if finding.origins:
            place = len(finding.origins) - 1
            await self._date_again(finding, place, finding.shown_in, False)
        elif questions := await self.questions(finding, inputs_of(finding)):
            await self._put(finding, await self.origin(finding.shown_in, questions), None)

    async def date_reopened(self, keys: list[str], commit: str) -> None:
        """Searches for the new origin of findings whose known inputs fail again."""
        for key in keys:
            finding = self.catalogue.findings[key]
            failing = [one for one in inputs_of(finding) if fails_with(one, self.where)]
            try:
                questions = await self.questions(finding, failing)
                if not questions:
                    continue
                origin = await self.origin(commit, questions)
                back = await self._came_back(finding, origin)
            except WindlassError as error:
                self.notify(f"{key}: could not find its origin: {error}")
                continue
            await self._put(finding, origin, None if back else len(finding.origins) - 1)

    async def _put(self, finding: Finding, origin: Origin, place: int | None) -> None:
        """Adds an origin to a record, or replaces one."""
        before = await self.compare(finding, origin.last_good)

        def change(known: Finding | None) -> Finding:
            return compared(with_origin(known or finding, origin, place=place), before)

        self.catalogue.put(await self.store.update(finding.key, change))

    async def questions(self, finding: Finding, inputs: Sequence[KeptInput]) -> list[Question]:
        """Returns a question for each of these inputs that is still stored."""
        found = []
        for one in inputs:
            path = self.scratch / f"dated-{one.name}"
            if await self.store.fetch_input(finding, path, one.name):
                found.append(self.question(path, one, finding))
        return found

    async def _date_again(self, finding: Finding, place: int, commit: str, left: bool) -> None:
        """Makes one new search from a commit that fails, and takes the better result.

        A search that had no time to try all builds continues where it stopped. If the old result is
        about commits that a forced push has `left` behind, any result is better.
        """
        old = finding.origins[place]
        inputs = [one for one in inputs_of(finding) if one.origin == place] or inputs_of(finding)
        first = old.input or finding.input
        inputs.sort(key=lambda one: (one.name != first, one.name != finding.input))
        questions = await self.questions(finding, inputs)
        bad = await self._start_of(old, commit, left, questions[0]) if questions else None
        if bad is None:
            return
        new = await self.origin(bad, questions)
        further = old.cut_short and new.first_bad != old.first_bad and new.width == old.width
        if left or further or new.width < old.width:
            await self._put(finding, new, place)

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
