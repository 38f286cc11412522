"""Searches for the commit that introduced a bug: one search with one input over builds.

It walks back along first parents until a build runs the input fine. Bisection would be wrong for a
bug that came, went and came back. A build that refuses the input says nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.ports.clock import Clock
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.engines.input_words import ProgramText, has_checker
from windlass_fuzz.engines.sanitizers import ASSERTIONS
from windlass_fuzz.engines.signature import Signature, is_surely_same
from windlass_fuzz.findings.judge import (
    Judge,
    Outcome,
    Reproduction,
    apart_from_leaks,
    tries_for,
)
from windlass_fuzz.findings.markdown import code
from windlass_fuzz.findings.record import LATE, Finding, Fix, KeptInput, Origin
from windlass_fuzz.sources.harmless import may_break
from windlass_fuzz.sources.mirror import MAX_COMMITS, Mirror

WALK: Final = 32  # builds tried one by one; after them the search takes larger steps
TRIED: Final = 60  # builds that a record lists
SUSPECTS: Final = 20  # commits that a record lists
MAX_BUILT: Final = 12  # commits that one search builds

Build = Callable[[str], Awaitable[LocalBuild | None]]
Probe = Callable[[str], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Question:
    """What a search asks of each build: an input, how often to run it, and until when.

    `names` are the bug's names. Without them, any failure counts as the bug. `others` are names of
    other bugs. A flaky input is fine
    only if it ran as often as `needed`. `known` is how it fails, and `checker` what a build needs
    to report that.
    """

    path: Path
    name: str
    tries: int
    slow: bool
    until_ms: int
    names: frozenset[str] = frozenset()
    needed: int = 0
    known: Signature | None = None
    checker: str = ""
    others: frozenset[str] = frozenset()

    def fits(self, result: Reproduction) -> bool:
        """Returns whether a failure is surely the bug that the search is about."""
        found = [one for one in result.signatures if one.title not in self.others]
        return not self.names or any(is_surely_same(one, self.names) for one in found)


@dataclass(slots=True)
class _Search:
    """The state of one search.

    `sure_bad` is the oldest build that fails as the bug does. Older ones may fail in another way:
    `other` is the newest of these, and `other_name` its failure. `probe` asks a build instead of
    running one input. `merge` is a merge that may itself
    be to blame: for what it combined, or for a fix that it lost.
    """

    first_bad: str
    sure_bad: str
    other: str = ""
    other_name: str = ""
    last_good: str | None = None
    line_bad: str = ""
    merge: str = ""
    probe: Probe | None = None
    answers: dict[str, Outcome] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    built: int = 0

    def note_failure(self, commit: str, result: Reproduction, question: Question) -> None:
        """Notes whether a build fails as the bug does; searches go from newer to older builds."""
        if question.fits(result):
            self.sure_bad, self.other = commit, ""
        elif not self.other:
            self.other, self.other_name = commit, result.signatures[0].title

    def assume(self, text: str) -> None:
        if text not in self.assumed:
            self.assumed.append(text)


@dataclass(slots=True)
class Bisector:
    """Runs inputs with the builds of other commits; `build` makes missing ones, if allowed.

    Files with these `extensions` are code, files that match these `tests` are tests.
    """

    builds: BuildCache
    mirror: Mirror
    judge_of: Callable[[Path], Judge]
    clock: Clock
    tries: int
    extensions: Sequence[str]
    build: Build | None = None
    combination: str = ""
    tests: Sequence[str] = ()
    notify: Callable[[str], None] = lambda _: None

    async def answer(self, commit: str, question: Question) -> Outcome | None:
        """Returns how the build of a commit handles an input; None if there is no build."""
        result = await self.run(commit, question)
        return None if result is None else _outcome(result)

    async def run(self, commit: str, question: Question) -> Reproduction | None:
        """Returns how the build of a commit runs an input; None if there is no build."""
        build = await self.builds.fetch(commit)
        if build is None and self.build is not None:
            build = await self.build(commit)
        if build is None:
            return None
        try:
            judge = self.judge_of(build.folder)
            result = await judge.reproduce(
                question.path, question.tries, question.slow,
                lambda: self.clock.now_ms() >= question.until_ms, question.known,
            )  # fmt: skip
        except InvalidInput as error:  # its binary had another name then
            return Reproduction(0, 0, unclear=f"cannot run: {error}")
        if question.known is not None:
            result = apart_from_leaks(result, question.known.kind)
        if result.fine and result.tried < question.needed:
            return result._replace(unclear="fails too rarely to say that it is fine")
        if result.fine and not await self.has(question.checker, build.folder, commit):
            return result._replace(unclear=f"has no {question.checker}")
        return result

    async def stored_judge(self, commit: str | None) -> Judge | None:
        """Returns what runs inputs with the stored build of a commit; None if there is none."""
        build = None if commit is None else await self.builds.fetch(commit)
        return None if build is None else self.judge_of(build.folder)

    async def has(self, checker: str, binaries: Path, commit: str) -> bool:
        """Returns whether a build contains what reports a failure, if that is needed.

        A program without any assertions is accepted, unless its sources have some.
        """
        if not checker or has_checker(ProgramText(binaries), checker):
            return True
        return checker == ASSERTIONS and not await self.mirror.asserts(commit)

    def tries_of(self, one: KeptInput) -> int:
        """Returns how often a search runs a kept input; flaky ones need more tries."""
        return tries_for(one.shown, one.tried, self.tries)

    async def origin(self, commit: str, question: Question, probe: Probe | None = None) -> Origin:
        """Searches from `commit`, which is known to fail."""
        search = _Search(commit, commit, probe=probe)
        built = set(await self.builds.commits())
        await self._walk(
            search, await self.mirror.first_parents(commit, MAX_COMMITS), built, question
        )
        await self._narrow(search, question)
        search.line_bad = search.first_bad
        await self._enter_merge(search, built, question)
        return await self._result(search, question)

    async def fix(self, commit: str, until_ms: int, gone: Probe) -> Fix:
        """Searches from `commit`, which runs all inputs fine, for the fix.

        `gone` says "fails" about builds without the bug, and "fine" about those that have it.
        """
        found = await self.origin(commit, Question(Path(), "", 1, False, until_ms), gone)
        return msgspec.convert(msgspec.structs.asdict(found), Fix)

    async def could_narrow(self, origin: Origin) -> bool:
        """Returns whether there is a build that the search did not try and that may help."""
        if origin.exact:
            return False
        if origin.last_good is None:
            line = await self.mirror.first_parents(origin.first_bad, MAX_COMMITS)
            useful = set(line[1:])
        else:
            useful = set(await self.mirror.between(origin.last_good, origin.first_bad))
        untried = (useful & set(await self.builds.commits())) - set(origin.tried)
        return bool(untried) or (self.build is not None and not origin.tried)

    async def subject(self, commit: str) -> str:
        """Returns author, date and first line of a commit."""
        return await self.mirror.subject(commit)

    async def comes_after(self, commit: str, later: str) -> bool:
        """Returns whether `later` is a descendant of `commit`."""
        return commit != later and await self.mirror.is_ancestor(commit, later)

    async def may_reopen(self, finding: Finding, commit: str) -> bool:
        """Returns whether a failure of this commit means that a closed finding is back.

        A commit without the fix still has the bug. If no fix is known, any commit counts.
        """
        for fix in finding.fixes:
            if commit == fix or not await self.mirror.has(fix):
                return True
            if await self.comes_after(fix, commit):
                return True
        return not finding.fixes

    async def _walk(
        self, search: _Search, line: Sequence[str], built: set[str], question: Question
    ) -> None:
        """Walks back over the builds of a line, newest first, until one is fine."""
        older = [commit for commit in line if commit in built and commit != search.first_bad]
        place, leap = 0, 1
        leapt: list[str] = []
        while place < len(older):
            if self._late(search, question):
                return
            answer = await self._ask(search, older[place], question)
            if answer == "fine":
                search.last_good = older[place]
                break
            if answer == "fails":
                search.first_bad = older[place]
                leapt = []
            if place >= WALK:
                leapt += older[place + 1 : place + leap]
                place, leap = place + leap, leap * 2
            else:
                place += 1
        await self._halve(search, [c for c in leapt if c not in search.answers], question)
        if leapt:
            search.assume("the bug did not come and go between the builds that were tried")

    async def _halve(self, search: _Search, between: list[str], question: Question) -> None:
        """Halves commits between the last good and the first bad one, newest first."""
        while between and not self._late(search, question):
            middle = len(between) // 2
            answer = await self._ask(search, between[middle], question)
            if answer == "fails":
                search.first_bad = between[middle]
                between = between[middle + 1 :]
            elif answer == "fine":
                search.last_good = between[middle]
                between = between[:middle]
            else:
                del between[middle]

    async def _narrow(self, search: _Search, question: Question) -> None:
        """Builds commits of the range that have no build, if that is allowed."""
        if self.build is None:
            return
        line = await self.mirror.first_parents(search.first_bad, MAX_COMMITS)
        if search.last_good is None:
            await self._build_older(search, line[1:], question)
        if search.last_good in line:
            between = line[1 : line.index(search.last_good)]
            between = [commit for commit in between if commit not in search.answers]
            if between:
                search.assume("the bug did not come and go between the commits that were built")
            await self._halve(search, between, question)

    async def _build_older(self, search: _Search, line: Sequence[str], question: Question) -> None:
        """Builds ever older commits until one is fine."""
        place, leap = 0, 1
        while place < len(line) and not self._late(search, question):
            answer = await self._ask(search, line[place], question)
            if answer == "fine":
                search.last_good = line[place]
                return
            if answer == "fails":
                search.first_bad = line[place]
            place, leap = place + leap, leap * 2

    async def _enter_merge(self, search: _Search, built: set[str], question: Question) -> None:
        """Follows the other parents of a merge that brought the bug."""
        while search.last_good and not search.merge and not self._late(search, question):
            merge = search.first_bad
            others = (await self.mirror.parents(merge))[1:]
            fine = 0
            for parent in others:
                line = await self.mirror.first_parents(
                    parent, MAX_COMMITS, without=search.last_good
                )
                known = [c for c in line if c in built or self.build is not None]
                answer = await self._ask(search, known[0], question) if known else "unclear"
                if answer == "fails":
                    search.first_bad = known[0]
                    if not await self._walk_side(search, known[1:], question):
                        fork = (await self.mirror.parents(line[-1]))[:1]
                        await self._ask_fork(search, merge, fork, built, question)
                    break
                fine += answer == "fine" and known[0] == parent
            else:
                search.merge = merge if others and fine == len(others) else ""
                return

    async def _walk_side(self, search: _Search, line: Sequence[str], question: Question) -> bool:
        """Walks back over a side branch; returns whether one of its builds is fine."""
        for commit in line:
            if self._late(search, question):
                return False
            answer = await self._ask(search, commit, question)
            if answer == "fine":
                search.last_good = commit
                return True
            if answer == "fails":
                search.first_bad = commit
        return False

    async def _ask_fork(
        self, search: _Search, merge: str, fork: list[str], built: set[str], question: Question
    ) -> None:
        """Finds out whether a side branch whose builds all fail began with the bug.

        Then its commits are not to blame: the main line had fixed the bug, and the merge lost the
        fix.
        """
        known = bool(fork) and (fork[0] in built or self.build is not None)
        answer = await self._ask(search, fork[0], question) if known else "unclear"
        if answer == "fine":
            search.last_good = fork[0]
        elif answer == "fails" and not search.other:
            search.first_bad, search.merge = merge, merge
        else:
            search.merge = merge
            search.assume("the branch that was merged may have begun with the bug")

    async def _ask(self, search: _Search, commit: str, question: Question) -> Outcome:
        """Returns the answer of a build, each asked once; a missing one is unclear."""
        if commit not in search.answers:
            stored = commit in await self.builds.commits()
            if not stored and search.built >= MAX_BUILT:
                search.assume(f"only {MAX_BUILT} commits were built for the search")
                return "unclear"
            search.built += not stored
            if search.probe is not None:
                search.answers[commit] = await search.probe(commit)
                return search.answers[commit]
            result = await self.run(commit, question)
            search.answers[commit] = "unclear" if result is None else _outcome(result)
            self.notify(f"{commit[:12]}: {search.answers[commit]}")
            if result is not None and result.shown:
                search.note_failure(commit, result, question)
        return search.answers[commit]

    async def _may_break(self, commit: str) -> bool:
        return may_break(await self.mirror.changes(commit), self.extensions, self.tests)

    def _late(self, search: _Search, question: Question) -> bool:
        if self.clock.now_ms() < question.until_ms:
            return False
        search.assume(LATE)
        return True

    async def _with_merge(self, search: _Search, between: list[str]) -> list[str]:
        """Returns the suspects with a merge that may be to blame, or only that merge."""
        if search.merge == search.first_bad and search.last_good is not None:
            main = (await self.mirror.parents(search.merge))[0]
            between = await self.mirror.between(search.last_good, main)
        return [search.merge, *between]

    async def _result(self, search: _Search, question: Question) -> Origin:
        between: list[str] = []
        if search.last_good is not None:
            between = await self.mirror.between(search.last_good, search.first_bad)
        line_bad = search.line_bad if search.line_bad != search.first_bad else ""
        if search.other:
            # The failures of these builds may be this bug, or hide it: any of the commits may have
            # introduced it.
            if search.last_good is not None:
                between = await self.mirror.between(search.last_good, search.sure_bad)
            shows = f"{code(search.other_name)}, which {search.other[:12]} shows"
            search.assume(f"{shows}, may be this bug or hide it")
            search.first_bad, line_bad = search.sure_bad, ""
        if search.merge:
            between = await self._with_merge(search, between)
        suspects = [c for c in between if await self._may_break(c)]
        if suspects and len(suspects) < len(between):
            search.assume("commits that change only documents or tests are not to blame")
        suspects = suspects or between
        if question.needed:
            often = f"a build that runs it fine {question.tries} times is good"
            search.assume(f"the input fails in some runs only, and {often}")
        unclear = [c for c, answer in search.answers.items() if answer == "unclear"]
        if unclear:
            names = ", ".join(commit[:12] for commit in unclear[:5])
            search.assume(f"these builds did not say whether they have it: {names}")
        found = Origin(
            first_bad=search.first_bad, last_good=search.last_good, suspects=suspects[:SUSPECTS],
            suspect_count=len(suspects), assumed=search.assumed,
            tried=list(search.answers)[:TRIED], unclear=unclear[:TRIED], input=question.name,
            combination=self.combination, searched_at_ms=self.clock.now_ms(), line_bad=line_bad,
        )  # fmt: skip
        return msgspec.structs.replace(found, subject=await self.subject(found.culprit))


def _outcome(result: Reproduction) -> Outcome:
    if result.shown:
        return "fails"
    return "fine" if result.fine else "unclear"
