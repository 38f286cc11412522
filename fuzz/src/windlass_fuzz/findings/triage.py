"""Turns inputs that broke a build into findings: groups, reproduces, minimises and dates them."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from windlass.ports.clock import Clock
from windlass_fuzz.engines.input_words import ProgramText, has_checker
from windlass_fuzz.engines.sanitizers import checker_of
from windlass_fuzz.engines.signature import Signature, claim_of, key_of
from windlass_fuzz.findings.bisect import Question
from windlass_fuzz.findings.claims import Claims
from windlass_fuzz.findings.dating import Dated, Dating
from windlass_fuzz.findings.evidence import Where, first_evidence
from windlass_fuzz.findings.judge import (
    FLAKY_TRIES,
    MORE_TRIES,
    SEEN_ENOUGH,
    TRIES,
    Judge,
    Observation,
    Reproduction,
    Slow,
    tries_for,
    tries_needed,
)
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.findings.minimise import StillFails, minimise, without
from windlass_fuzz.findings.record import (
    Finding,
    KeptInput,
    binary_of,
    excerpt_of,
    shorten,
)
from windlass_fuzz.findings.same_bug import SameBug
from windlass_fuzz.findings.sightings import ANYWHERE, compared
from windlass_fuzz.findings.store import FindingStore, input_name
from windlass_fuzz.findings.untriaged import KEPT
from windlass_fuzz.state.state_file import UnreadableState

MAX_FILES: Final = 5_000
LOOKS: Final = 4
GROUPING: Final = 3  # a third of the time is for running each input once
MORE_LOOKS: Final = 16  # tries for inputs that did not fail in the first ones
MAX_QUIET: Final = 20  # maximum of such inputs
SHARE: Final = 2  # of this many inputs of a finding, one is kept as it was found
ASKED: Final = 3  # inputs that are run with the build of a fix, however late it is
ASKING_MS: Final = 10_000  # time for them, and for telling two failures apart
MAX_ASKED: Final = 30
SHRINK_MS: Final = 60_000  # per finding, if there is time
# Bytes. Smaller inputs skip the engine's minimiser: libFuzzer's always uses all its time.
SMALL: Final = 32
EVERY_TRY: Final = (*Slow, "memory")  # kinds that must fail in every try


class Failure(NamedTuple):
    """A failure of this run: its signature, and the inputs that show it, smallest first.

    `seen` is how the first of them failed, in the last of `looks` runs.
    """

    signature: Signature
    paths: list[Path]
    seen: Observation | None = None
    looks: int = 1


class _Seen(NamedTuple):
    """How an input failed, in the last of several runs."""

    path: Path
    seen: Observation
    looks: int


class _Shown(NamedTuple):
    """The input that a report shows, its runs, and whether there was time to reduce it fully."""

    path: Path
    ran: Reproduction
    minimised: bool = False


class _NoTime(Exception):
    """There was no time to find out whether a failure is a known bug."""


async def _keep_all() -> None:
    """Stands for no other job."""


@dataclass(slots=True)
class Triage:
    """Handles the failures of one run until `deadline_ms`; `left` are files that were not
    handled.

    `moments` are those of the commit's time line. With `only_new`, more inputs of live findings
    that the commit has shown are left, too. `drop_done` deletes files that another job has triaged.
    """

    judge: Judge
    engine_name: str
    binaries: Path
    dating: Dating
    store: FindingStore
    scratch: Path
    clock: Clock
    deadline_ms: int
    catalogue: Catalogue
    claims: Claims
    notify: Callable[[str], None] = lambda _: None
    tries: int = TRIES
    where: Where = ANYWHERE
    moments: Mapping[str, int] = field(default_factory=dict)
    only_new: bool = False
    drop_done: Callable[[], Awaitable[None]] = _keep_all
    left: list[Path] = field(default_factory=list)

    async def run(self, crashes: Path, commit: str) -> list[Finding]:
        """Turns all failures in a folder into findings of a commit."""
        found: dict[str, Finding] = {}
        failures = await self._group(crashes)
        for number, failure in enumerate(failures):
            known = self.catalogue.named(failure.signature.title)
            more = known is not None and known.live and commit in known.seen_in
            if (self._late() and found) or (self.only_new and more):
                self._leave(failure)
                continue
            async with self.claims.of(claim_of(failure.signature)) as ours:
                if not ours:
                    self._leave(failure)
                    continue
                await self.drop_done()
                failure.paths[:] = [path for path in failure.paths if path.exists()]
                if not failure.paths:
                    continue
                try:
                    await self.catalogue.add_new(self.store, self.notify)
                    finding = await self._file(failure, commit, len(failures) - number)
                except _NoTime:
                    self._leave(failure)
                    continue
                except UnreadableState as error:
                    self.notify(str(error))
                    continue
            if finding is not None:
                self.catalogue.put(finding)
                found[finding.key] = finding
                failures += await self._beside(failure, finding)
        if self.left:
            left = count_of(len(self.left), "input")
            self.notify(f"left for later: {left}")
        return list(found.values())

    def _leave(self, failure: Failure) -> None:
        """Leaves a failure to another run, or to another job that has claimed its bug."""
        self.left += failure.paths
        self.catalogue.waiting.append(failure.signature)

    async def _group(self, crashes: Path) -> list[Failure]:
        """Returns the failures with their inputs, unknown ones first.

        Every file is run once, in a part of the time: what was found has to be examined, too. A
        failure that needs a stack for its name takes longer, so inputs that look different take
        turns.
        """
        until = self.clock.now_ms() + (self.deadline_ms - self.clock.now_ms()) // GROUPING
        files = _different(sorted((p for p in crashes.iterdir() if p.is_file()), key=_by_turn))
        failures: dict[str, Failure] = {}
        unnamed: dict[str, list[_Seen]] = {}
        quiet: list[Path] = []
        for number, path in enumerate(files):
            late = self.clock.now_ms() >= until
            if number >= MAX_FILES or (late and (failures or unnamed)):
                self.left += files[number:]
                self.catalogue.unseen = True
                break
            seen, looks = await self._look(path, LOOKS)
            hang = self.catalogue.hang_in(seen.stack)
            if seen.outcome == "fine":
                quiet.append(path)
            elif hang is not None:  # to prove again that it never ends takes long
                _add(failures, path, seen._replace(signature=hang), looks)
            elif seen.signature is not None and self.judge.has_more_to_say(seen.signature):
                unnamed.setdefault(seen.signature.title, []).append(_Seen(path, seen, looks))
            else:
                _add(failures, path, seen, looks)
        for before in _in_turn(list(unnamed.values())):
            if self._late() and failures:
                self.left.append(before.path)
                if before.seen.signature is not None:
                    self.catalogue.waiting.append(before.seen.signature)
                continue
            seen, looks = await self._look(before.path, LOOKS, deep=True)
            again = _Seen(before.path, seen, before.looks + looks)
            _add(failures, *(again if seen.outcome == "fails" else before))
        await self._look_longer(quiet, failures)
        for failure in failures.values():
            failure.paths.sort(key=_by_size)
        return sorted(
            failures.values(), key=lambda one: self.catalogue.named(one.signature.title) is not None
        )

    async def _look(self, path: Path, tries: int, deep: bool = False) -> tuple[Observation, int]:
        """Runs an input until it fails, a few times at most: the engine saw it fail once."""
        seen = await self.judge.look(path, deep=deep)
        looks = 1
        while seen.outcome == "fine" and looks < tries:
            seen = await self.judge.look(path, deep=deep)
            looks += 1
        return seen, looks

    async def _look_longer(self, quiet: list[Path], failures: dict[str, Failure]) -> None:
        """Gives inputs that did not fail again some more tries, then drops them."""
        dropped = len(quiet[MAX_QUIET:])
        for path in quiet[:MAX_QUIET]:
            if self._late():
                dropped += 1
                continue
            seen, looks = await self._look(path, MORE_LOOKS, deep=True)
            _add(failures, path, seen, LOOKS + looks)
            dropped += seen.outcome == "fine"
        if dropped:
            self.notify(f"dropped, did not fail again: {count_of(dropped, 'input')}")

    async def _file(self, failure: Failure, commit: str, waiting: int) -> Finding | None:
        if explaining := self.catalogue.explaining(failure.signature, commit):
            return explaining[0]
        title = failure.signature.title
        self.notify(f"triaging {title}")
        again = await self._reproduce(failure)
        if again.shown == 0 or (failure.signature.kind in EVERY_TRY and again.shown < again.tried):
            self.notify(f"dropped, not reproduced in {again.tried} runs: {title}")
            return None
        shown = _Shown(failure.paths[0], again)
        if failure.signature.family:
            shown = await self._shrink(failure, again, waiting)
            if not shown.minimised and self.catalogue.of_family(failure.signature, commit):
                self.left.append(shown.path)  # what it is about is not known yet
                return None
            named = failure.signature if shown.ran.last is None else shown.ran.last.signature
            failure, again = Failure(named or failure.signature, [shown.path]), shown.ran
        failure = _with_stack(failure, again)
        title = failure.signature.title
        titles = [title, *(one.title for one in again.signatures)]
        known = next((f for name in titles if (f := self.catalogue.named(name))), None)
        known = known or self.catalogue.alike(failure.signature, self.where.target)
        known = known or self.catalogue.unfinished(failure.signature)
        known = known or await self._twin(failure, again, commit)
        beyond = await self._beyond_fix(known, failure, commit)
        if beyond == []:
            self.notify(
                f"known, and fixed since in {known.fixes[0][:12] if known else ''}: {title}"
            )
            return None
        if beyond:  # unmodified: a smaller one might be fixed by an incomplete fix
            failure, shown = failure._replace(paths=beyond), _Shown(beyond[0], again)
        key = known.key if known else key_of(title)
        finding = await self._with_others(
            failure, await self._describe(failure, shown, commit, key)
        )
        first_ms, now_ms = _written_ms(failure.paths), self.clock.now_ms()
        moments = {**self.moments, "first seen": first_ms, "triaged": now_ms}
        dated = await self.dating.date(known, finding, self._questions(failure, finding, known))
        moments["dated"] = self.clock.now_ms()
        if not (beyond or failure.signature.family):
            finding = await self._reduced(failure, finding, again, waiting, dated)
            moments["reduced"] = self.clock.now_ms()
        before = await self.dating.compare(finding, dated.last_good)
        finding = msgspec.structs.replace(compared(finding, before), moments=moments)
        return await self.store.update(key, lambda stored: dated.change(stored, finding))

    def _questions(
        self, failure: Failure, finding: Finding, known: Finding | None
    ) -> list[Question]:
        """Returns what searches for the origin ask of builds, for each kept input."""
        inputs = {one.name: one for one in finding.inputs}
        return [
            self.dating.question(path, inputs[name], finding, known)
            for path in failure.paths
            if (name := input_name(path.read_bytes(), path.suffix)) in inputs
        ]

    async def _reduced(
        self, failure: Failure, finding: Finding, again: Reproduction, waiting: int, dated: Dated
    ) -> Finding:
        """Returns the record with a reduced input, beside the one that it was reduced from.

        If builds before the bug refused it, it would say nothing about other builds.
        """
        paths = [dated.input, *(path for path in failure.paths if path != dated.input)]
        good = await self.dating.bisector.stored_judge(dated.last_good)
        shown = await self._shrink(failure._replace(paths=paths), again, waiting, good)
        if shown.path == dated.input:
            return finding
        source = input_name(dated.input.read_bytes(), dated.input.suffix)
        after = await self._describe(failure, shown, finding.found_in, finding.key)
        small = msgspec.structs.replace(after.inputs[0], source=source)
        return msgspec.structs.replace(after, inputs=[small, *finding.inputs])

    async def _twin(self, failure: Failure, again: Reproduction, commit: str) -> Finding | None:
        """Returns a finding in the same function that the same commit introduced: they are one
        bug. A function may have been renamed.

        A search for its origin that ran out of time goes on first. Raises `_NoTime` if there is no
        time for that: filed as another finding, it would be a duplicate.
        """
        same, signature, path = SameBug(self.dating.bisector), failure.signature, failure.paths[0]
        tries = tries_for(again.shown, again.tried, self.tries)
        needed = tries_needed(again.shown, again.tried)
        until = max(self.deadline_ms, self.clock.now_ms() + ASKING_MS)
        question = Question(
            path, path.name, tries, signature.kind in Slow, until, needed=needed, known=signature
        )
        similar = self.catalogue.with_callers_of(signature)
        renamed = [one for one in similar if await same.was_renamed(one, signature, commit)]
        close_ones = self.catalogue.close_to(signature) + renamed
        for close in close_ones:
            if close.origins and close.origins[-1].cut_short:
                if self.dating.late():
                    raise _NoTime
                await self.dating.again(close)
            one = self.catalogue.findings[close.key]
            if await same.was_behind(one, signature, again.last, commit):
                continue
            if await same.came_together(one, question):
                return one
        if close_ones and self.clock.now_ms() >= until:
            raise _NoTime
        return None

    async def _beside(self, failure: Failure, finding: Finding) -> list[Failure]:
        """Returns the rest of an input without the parts that a finding is about, if that fails
        too.

        An input may show two bugs, and only a bug that is named by its input can hide another.
        """
        path = failure.paths[0]
        if not failure.signature.family or not set(finding.frames) < set(failure.signature.frames):
            return []
        data = path.read_bytes()
        for number, operator in enumerate(finding.frames):
            rest = self.scratch / f"{path.stem}-{number}{path.suffix}"
            rest.write_bytes(without(data, operator))
            seen = await self.judge.look(rest)
            left = seen.signature
            same = left is not None and left.family == failure.signature.family
            if left is not None and same and operator not in left.frames:
                return [Failure(left, [rest])]
        return []

    async def _beyond_fix(
        self, known: Finding | None, failure: Failure, commit: str
    ) -> list[Path] | None:
        """Returns the inputs of a commit without the fix that the fix does not cure.

        Returns None if that does not apply: the finding is open, the commit has the fix, or no
        build of a fix can tell.
        """
        bisector = self.dating.bisector
        if known is None or known.live or await bisector.may_reopen(known, commit):
            return None
        failing: list[Path] = []
        unknown = False
        slow = failure.signature.kind in Slow
        # Some are run even if the time is over: without an answer, it would be reopened.
        until = max(self.deadline_ms, self.clock.now_ms() + ASKING_MS)
        asked = _spread(failure.paths, MAX_ASKED)
        for number, path in enumerate(asked):
            if number >= ASKED and self._late():
                self.left += asked[number:]
                break
            question = Question(path, path.name, self.tries, slow, until)
            answers = {await bisector.answer(fix, question) for fix in known.fixes}
            if "fails" in answers:
                failing.append(path)
            unknown = unknown or "fine" not in answers
        return sorted(failing, key=_by_size) or (None if unknown else [])

    async def _reproduce(self, failure: Failure) -> Reproduction:
        """Runs the smallest input again; one that fails rarely gets more tries."""
        slow = failure.signature.kind in Slow
        late = self._late if slow else lambda: False
        again = await self.judge.reproduce(
            failure.paths[0], self.tries, slow, late, failure.signature
        )
        if slow or again.shown == again.tried:
            return again
        if not again.shown:
            more = await self.judge.reproduce(failure.paths[0], MORE_TRIES)
            if not more.shown and failure.seen is not None:
                # It failed again when we ran it, as it did for the engine.
                tried = again.tried + more.tried + failure.looks
                return Reproduction(1, tried, (failure.signature,), failure.seen, more.unclear)
            again = _added(again, more)
        return await self._count_flaky(failure.paths[0], again)

    async def _count_flaky(self, path: Path, again: Reproduction) -> Reproduction:
        """Runs a flaky input until its failure rate is roughly known."""
        while 0 < again.shown < SEEN_ENOUGH and again.tried < FLAKY_TRIES and not self._late():
            more = await self.judge.reproduce(path, self.tries, late=self._late)
            if not more.tried:
                break
            again = _added(again, more)
        return again

    async def _shrink(
        self, failure: Failure, again: Reproduction, waiting: int, good: Judge | None = None
    ) -> _Shown:
        """Minimises with the engine's own tool, then with delta debugging, as time allows.

        If the `good` build runs the input fine, it must run the smaller one fine, too.
        """
        best, wanted = failure.paths[0], failure.signature
        whole = _Shown(best, again)
        left = self.deadline_ms - self.clock.now_ms()
        budget = min(left // (waiting + 1), SHRINK_MS)
        if budget <= 0:
            return whole
        if good is not None and not await _runs_fine(good, best):
            good = None
        until = self.clock.now_ms() + budget
        own = self.scratch / f"own-{key_of(wanted.title)}{best.suffix}"
        large = best.stat().st_size > SMALL
        if large and await self.judge.engine.shrink(best, own, budget // 2):
            same = await self._same(own, wanted, deep=True)
            best = own if same and (good is None or await _runs_fine(good, own)) else best
        data = await minimise(
            best.read_bytes(), self._still_fails_until(until, failure, best, good)
        )
        finished = self.clock.now_ms() < until
        if data == whole.path.read_bytes():
            return whole._replace(minimised=finished)
        small = self.scratch / f"{key_of(wanted.title)}{best.suffix}"
        small.write_bytes(data)
        ran = await self._ran_as(small, wanted, again)
        return whole if ran is None else _Shown(small, ran, finished)

    async def _ran_as(
        self, small: Path, wanted: Signature, again: Reproduction
    ) -> Reproduction | None:
        """Returns how a reduced input runs; None if it shows the failure less often.

        A flaky or slow one is run once and keeps its count.
        """
        seen = await self._same(small, wanted, deep=True)
        if seen is None or seen.signature is None:
            return None
        if wanted.kind in Slow or again.shown < again.tried:
            return again._replace(last=seen, signatures=(seen.signature,))
        ran = await self.judge.reproduce(small, self.tries, known=wanted)
        return ran if ran.shown == ran.tried else None

    def _still_fails_until(
        self, until_ms: int, failure: Failure, best: Path, good: Judge | None
    ) -> StillFails:
        candidate = self.scratch / f"candidate-{key_of(failure.signature.title)}{best.suffix}"

        async def still_fails(data: bytes) -> bool:
            if self.clock.now_ms() >= until_ms:
                return False
            candidate.write_bytes(data)
            if await self._same(candidate, failure.signature) is None:
                return False
            return good is None or await _runs_fine(good, candidate)

        return still_fails

    async def _same(self, path: Path, wanted: Signature, deep: bool = False) -> Observation | None:
        """Returns how an input shows the same failure; None if it does not.

        Getting a stack takes long, so if only a stack would name the failure, any crash counts.
        """
        seen = await self.judge.look(path, deep=deep)
        if seen.outcome != "fails" or seen.signature is None:
            return None
        if wanted.family:
            same = seen.signature.family == wanted.family
        elif wanted.source == "stack" and not deep:
            same = seen.signature.kind == wanted.kind and seen.signature.source == "output"
        else:
            same = seen.signature.title == wanted.title
        return seen if same else None

    async def _describe(self, failure: Failure, shown: _Shown, commit: str, key: str) -> Finding:
        """Returns a record about one input and its runs with the build of a commit."""
        path, again, signature = shown.path, shown.ran, failure.signature
        data, output = path.read_bytes(), "" if again.last is None else again.last.output
        name = await self.store.put_input(key, data, path.suffix)
        finding = Finding(
            key=key, title=signature.title, kind=signature.kind, engine=self.engine_name,
            combination=self.where.combination, command=self._command(key, path),
            input=name, size=len(data), excerpt=excerpt_of(data), binary=binary_of(data),
            shown=again.shown, tried=again.tried,
            output=shorten(output), output_of=name, output_in=commit,
            found_in=commit, found_at_ms=self.clock.now_ms(),
            signatures=[one.title for one in again.signatures], frames=list(signature.frames),
            group=self.catalogue.group_of(key, signature.frames),
        )  # fmt: skip
        own = self._kept(finding, name, len(data), shown.minimised)
        return msgspec.structs.replace(finding, inputs=[own])

    def _kept(self, finding: Finding, name: str, size: int, minimised: bool = False) -> KeptInput:
        return KeptInput(
            name=name, size=size, title=finding.title, found_in=finding.found_in,
            shown=finding.shown, tried=finding.tried, checked_in=finding.found_in,
            minimised=minimised, checker=self._checker(finding),
            combinations=first_evidence(self.where, finding.found_in),
        )  # fmt: skip

    async def _with_others(self, failure: Failure, finding: Finding) -> Finding:
        """Keeps some more inputs unmodified: an incomplete fix may cure only the smallest.

        A title from output alone may cover several bugs, so more of its inputs are kept.
        """
        others = [path for path in failure.paths[1:] if not self._of_another(path, finding.key)]
        if failure.signature.source != "output":
            others = _spread(others, max(self.dating.inputs // SHARE, 2))
        made = []
        for path in others[: self.dating.inputs]:
            data = path.read_bytes()
            name = await self.store.put_input(finding.key, data, path.suffix)
            made.append(self._kept(finding, name, len(data)))
        return msgspec.structs.replace(finding, inputs=[*finding.inputs, *made])

    def _checker(self, finding: Finding) -> str:
        """Returns the part of the build that reported a failure, if the build's files name it."""
        checker = checker_of(finding.kind, finding.title)
        return checker if has_checker(ProgramText(self.binaries), checker) else ""

    def _of_another(self, path: Path, key: str) -> bool:
        """Returns whether an input is kept for another live bug, which it would still show."""
        name = input_name(path.read_bytes(), path.suffix)
        findings = (one for one in self.catalogue.findings.values() if one.live and one.key != key)
        return any(name == kept.name for one in findings for kept in one.inputs)

    def _command(self, key: str, small: Path) -> list[str]:
        """Returns the command to run in the build's folder, with the input copied there."""
        short = ((str(small), f"{key}{small.suffix}"), (f"{self.binaries}/", "./"))
        words = self.judge.engine.command(small)
        for long, instead in short:
            words = [word.replace(long, instead) for word in words]
        return words

    def _late(self) -> bool:
        return self.clock.now_ms() >= self.deadline_ms


async def _runs_fine(judge: Judge, path: Path) -> bool:
    return (await judge.look(path)).outcome == "fine"


def _add(failures: dict[str, Failure], path: Path, seen: Observation, looks: int) -> None:
    """Adds an input to the failure that it shows, if any."""
    if seen.outcome == "fails" and seen.signature is not None:
        name = str(path) if seen.signature.family else seen.signature.title
        fresh = Failure(seen.signature, [], seen, looks)
        failures.setdefault(name, fresh).paths.append(path)


def _added(one: Reproduction, more: Reproduction) -> Reproduction:
    """Returns both together."""
    titles = {signature.title: signature for signature in (*one.signatures, *more.signatures)}
    return more._replace(
        shown=one.shown + more.shown, tried=one.tried + more.tried,
        signatures=tuple(titles.values()), last=more.last or one.last,
    )  # fmt: skip


def _written_ms(paths: list[Path]) -> int:
    """Returns when the first of these inputs was written."""
    return min(path.stat().st_mtime_ns for path in paths) // 1_000_000


def _in_turn(groups: list[list[_Seen]]) -> list[_Seen]:
    """Returns the first input of each group, then the second ones, and so on."""
    return [one for row in zip_longest(*groups) for one in row if one is not None]


def _with_stack(failure: Failure, again: Reproduction) -> Failure:
    """Returns the failure with its place, if only more runs have shown it."""
    found = next((one for one in again.signatures if one.source == "stack"), None)
    hang = found is not None and found.kind == failure.signature.kind == "hang"
    if found is None or not (hang or failure.signature.source == "output"):
        return failure
    return failure._replace(signature=found)


def _spread(paths: list[Path], count: int) -> list[Path]:
    """Returns `count` evenly spaced paths, from the last one on."""
    if len(paths) <= count:
        return paths[::-1]
    last = len(paths) - 1
    return [paths[last - last * number // (count - 1)] for number in range(count)]


def _different(paths: list[Path]) -> list[Path]:
    """Returns the first path of each content."""
    first: dict[bytes, Path] = {}
    for path in paths:
        first.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return list(first.values())


def _by_turn(path: Path) -> tuple[bool, int, str]:
    """Sorts inputs so that those of earlier runs come before new ones."""
    return not path.name.startswith(KEPT), *_by_size(path)


def _by_size(path: Path) -> tuple[int, str]:
    return path.stat().st_size, path.name
