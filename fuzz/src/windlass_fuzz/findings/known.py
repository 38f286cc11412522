"""Runs the inputs of known findings with a build: what still fails, under which signature.

This comes before new failures are triaged: an input that still breaks the build in another way
shows that a new signature belongs to an old finding.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from windlass.ports.clock import Clock
from windlass_fuzz.engines.signature import (
    Signature,
    is_close,
    is_surely_same,
    key_of,
    may_be_same,
    stack_of_title,
)
from windlass_fuzz.findings.bisect import Bisector, Question
from windlass_fuzz.findings.evidence import (
    Where,
    checker_for,
    first_evidence,
    inputs_for,
    inputs_of,
    missing_runs,
    was_run,
)
from windlass_fuzz.findings.judge import Judge, Reproduction, Slow, apart_from_leaks, tries_for
from windlass_fuzz.findings.on_branches.rule import ends_of, facts_of, settled
from windlass_fuzz.findings.on_branches.watch import BranchWatch
from windlass_fuzz.findings.record import (
    Finding,
    KeptInput,
    binary_of,
    excerpt_of,
    shorten,
)
from windlass_fuzz.findings.same_bug import SameBug
from windlass_fuzz.findings.sightings import (
    ANYWHERE,
    checked,
    is_gone,
    mark_closed,
    reopened,
    with_masked,
)
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.state.state_file import UnreadableState

TRIES: Final = 3
TESTS: Final = 3  # inputs that show whether a build fails with everything
LIMITS: Final = ("timeout", "hang", "memory")


class _Ran(NamedTuple):
    """A finding, and how its inputs ran with a build."""

    finding: Finding
    results: dict[str, Reproduction]


@dataclass(slots=True)
class Catalogue:
    """The findings of a solver as known in this run, by key and by signature.

    `waiting` are failures of this run that nobody had time to examine, and `unseen` says that some
    inputs were not even run, so their bugs do not count as gone.
    """

    findings: dict[str, Finding] = field(default_factory=dict)
    waiting: list[Signature] = field(default_factory=list)
    unseen: bool = False

    def put(self, finding: Finding) -> None:
        self.findings[finding.key] = finding

    async def add_new(self, store: FindingStore, notify: Callable[[str], None]) -> None:
        """Adds what other runs have found since this catalogue was read."""
        async for finding in store.all(notify, but=self.findings):
            self.put(finding)

    def may_wait(self, finding: Finding) -> bool:
        """Returns whether an unexamined failure may be this bug."""
        slow = finding.kind in Slow
        return self.unseen or any(
            (slow and one.kind in Slow) or may_be_same(one, finding.names, finding.frames)
            for one in self.waiting
        )

    def is_live(self, key: str) -> bool:
        """Returns whether there is a live finding with this key."""
        return key in self.findings and self.findings[key].live

    def hides(self, key: str) -> bool:
        """Returns whether inputs of other live findings show this finding instead."""
        return any(
            kept.masked_by == key
            for one in self.findings.values()
            if one.live
            for kept in one.inputs
        )

    def named(self, title: str) -> Finding | None:
        """Returns the finding with this signature, preferably one that is not closed."""
        fitting = [one for one in self.findings.values() if title in one.names]
        return min(fitting, key=lambda one: (not one.live, one.found_at_ms), default=None)

    def alike(self, signature: Signature, target: str) -> Finding | None:
        """Returns a finding of another target that failed the same way in the same function.

        Above the innermost function, the stacks of two targets always differ.
        """
        place = _place_of(signature.title) if target and signature.frames else None
        fitting = [
            one
            for one in self.findings.values()
            if place is not None
            and one.targets
            and target not in one.targets
            and any(_place_of(name) == place for name in one.names)
        ]
        return min(fitting, key=lambda one: (not one.live, one.found_at_ms), default=None)

    def hang_in(self, stack: Sequence[str]) -> Signature | None:
        """Returns the name of a live hang that was in this function, too, if there is one."""
        for one in self.findings.values():
            place = stack_of_title(one.title)[:1]
            if one.live and one.kind == "hang" and place and place == list(stack[:1]):
                return Signature("hang", one.title, tuple(one.frames), "stack")
        return None

    def close_to(self, signature: Signature) -> list[Finding]:
        """Returns live findings that fail in the same function, with other callers or errors."""
        fitting = [
            one
            for one in self.findings.values()
            if one.live and any(is_close(signature.title, name) for name in one.names)
        ]
        return sorted(fitting, key=lambda one: one.found_at_ms)

    def with_callers_of(self, signature: Signature) -> list[Finding]:
        """Returns live findings of the same kind in other functions with the same callers."""
        return [
            one
            for one in self.findings.values()
            if one.live
            and one.kind == signature.kind
            and one.frames[1:] == list(signature.frames[1:])
            and one.frames[:1] != list(signature.frames[:1])
        ]

    def of_family(self, signature: Signature, commit: str = "") -> list[Finding]:
        """Returns live findings of the same family, if any, that this commit shows."""
        return [
            one
            for one in self.findings.values()
            if signature.family
            and one.live
            and (not commit or commit in one.seen_in)
            and any(name.startswith(f"{signature.family} (") for name in one.names)
        ]

    def explaining(self, signature: Signature, commit: str) -> list[Finding]:
        """Returns the ones whose operators are all in this input."""
        within = set(signature.frames)
        family = self.of_family(signature, commit)
        return [one for one in family if one.frames and set(one.frames) <= within]

    def unfinished(self, signature: Signature) -> Finding | None:
        """Returns a member of the family that was never fully minimised, if this one is within
        it.
        """
        here = set(signature.frames)
        fitting = [
            one
            for one in self.of_family(signature)
            if here <= set(one.frames) and not any(kept.minimised for kept in one.inputs)
        ]
        return min(fitting, key=lambda one: one.found_at_ms, default=None)

    def group_of(self, key: str, frames: tuple[str, ...]) -> str:
        """Returns the group of the findings that share a frame, or ""; never itself."""
        for other in self.findings.values():
            if key not in (other.key, other.group) and set(other.frames) & set(frames):
                return other.group or other.key
        return ""


@dataclass(slots=True)
class KnownFindings:
    """Checks known findings with one build; `works` says that the build runs some test.

    `sickness` says why the build's runs do not count; then it closes nothing. `binaries` is its
    folder. Unless it runs them `again`, inputs that have run with the build stay as they are.
    """

    judge: Judge
    bisector: Bisector
    store: FindingStore
    scratch: Path
    clock: Clock
    deadline_ms: int
    refused_is_fixed: bool = False
    works: bool = False
    notify: Callable[[str], None] = lambda _: None
    catalogue: Catalogue = field(default_factory=Catalogue)
    reopened: list[str] = field(default_factory=list)
    where: Where = ANYWHERE
    sickness: str = ""
    again: bool = True
    branches: BranchWatch | None = None
    binaries: Path = Path()
    _leaking: list[Path] = field(default_factory=list)

    async def load(self) -> None:
        """Reads all findings."""
        await self.catalogue.add_new(self.store, self.notify)

    async def check(self, commit: str, crashes: Path) -> None:
        """Runs the inputs of all findings while there is time, live findings first.

        One input of each comes before the others, so that a bug with many of them leaves time for
        the rest. Those that may be fixed come next. An input that shows another finding's
        signature, an unknown failure, or only a leak goes to `crashes`, where triage finds it.
        """
        order = sorted(self.catalogue.findings.values(), key=lambda one: _turn(one, commit))
        seen = [_Ran(finding, {}) for finding in order]
        for one in seen:
            if self._late():
                self.notify("no time is left to check all known findings")
                break
            await self._run_inputs(one, commit, 1)
        for one in sorted(seen, key=lambda one: any(ran.shown for ran in one.results.values())):
            if one.finding.live and one.results:
                await self._run_inputs(one, commit)
        for path in self._leaking:
            shutil.copyfile(path, crashes / path.name)
        ran = [one for one in seen if one.results]
        fresh = await self._fresh(ran, crashes)
        for finding, results in ran:
            try:
                await self._note(_Ran(finding, results), commit, crashes, fresh)
            except UnreadableState as error:
                self.notify(str(error))

    async def close_gone(self, commit: str, sighted: set[str]) -> list[Finding]:
        """Closes findings whose inputs all ran fine with a commit that comes after them.

        If the solver has several branches, each is judged separately.
        """
        closed = []
        for finding in list(self.catalogue.findings.values()):
            if not finding.live:
                continue
            gone = finding.key not in sighted and is_gone(finding, commit)
            if gone and self.catalogue.may_wait(finding):
                await self._doubt(finding, waiting_for(commit))
                continue
            if gone and await self._goes_on(finding, commit, sighted):
                continue
            if self.branches is not None and self.branches.concerns(finding):
                finding = await self._judge_branches(finding, commit if gone else None)
            quarantined = finding.state == "quarantined"
            if finding.branches or quarantined:
                closed += [] if finding.live else [finding]
            elif gone and await self._comes_after_all(finding, commit):
                closed.append(await self._close(finding, commit))
        return closed

    async def _goes_on(self, finding: Finding, commit: str, sighted: set[str]) -> bool:
        """Returns whether an input of a new finding showed this one before; then it keeps that.

        The fix may be incomplete and have changed how the rest of the bug fails.
        """
        same = SameBug(self.bisector)
        earlier = await same.earlier(finding, commit)
        known = Signature(finding.kind, finding.title)
        for other in [self.catalogue.findings[key] for key in sorted(sighted)]:
            path = self._path(other, other.input)
            shown = Signature(other.kind, other.title, tuple(other.frames))
            own = other.found_in == commit and other.combination == self.where.combination
            if not (earlier and own and await self.store.fetch_input(other, path)):
                continue
            question = Question(
                path, other.input, TRIES, finding.kind in Slow, self.deadline_ms, finding.names,
                known=known,
            )  # fmt: skip
            ran = await self.bisector.run(earlier, question)
            if ran is None or not ran.shown or not question.fits(ran):
                continue
            if await same.is_elsewhere(finding, finding.title, shown, commit):
                continue
            name = await self.store.put_input(finding.key, path.read_bytes(), path.suffix)
            kept = KeptInput(
                name=name, size=other.size, title=finding.title, found_in=earlier,
                shown=ran.shown, tried=ran.tried, checker=inputs_of(finding)[0].checker,
                combinations=first_evidence(self.where, earlier),
            )  # fmt: skip
            result = Reproduction(other.shown, other.tried, (shown,))
            change = partial(
                with_masked, one=kept, commit=commit, ran=result, by=other.key, where=self.where
            )
            self.catalogue.put(await self.store.update(finding.key, change))
            return True
        return False

    async def note_missing(self, commit: str, reasons: Mapping[str, str]) -> None:
        """Records which findings cannot be closed because combinations did not run, and why."""
        for finding in list(self.catalogue.findings.values()):
            why = missing_runs(finding, commit, reasons) if finding.live else ""
            if why and why != finding.unsure:
                await self._doubt(finding, why)

    async def _doubt(self, finding: Finding, why: str) -> None:
        """Records why a finding cannot be closed."""
        after = await self.store.update(
            finding.key, lambda known: replace(known or finding, unsure=why)
        )
        self.catalogue.put(after)

    async def note_branches(self, found: list[Finding]) -> None:
        """Records the branches of findings that another commit has shown."""
        for finding in found:
            if self.branches is not None and self.branches.concerns(finding):
                await self._judge_branches(finding, None)

    async def _judge_branches(self, finding: Finding, fine: str | None) -> Finding:
        """Records on which branches a finding is alive; closes it if there are none."""
        assert self.branches is not None
        entries = await self.branches.judge(finding, fine)
        ends = await ends_of(finding, entries, self.branches.ancestry)
        now = self.clock.now_ms()
        if settled(finding, entries, ends, now) == finding:
            return finding

        def change(known: Finding | None) -> Finding:
            if known is not None and facts_of(known, None) != facts_of(finding, None):
                return known  # another fuzzer has seen it in the meantime
            return settled(known or finding, entries, ends, now)

        after = await self.store.update(finding.key, change)
        self.catalogue.put(after)
        return after

    async def _run_inputs(self, ran: _Ran, commit: str, most: int | None = None) -> None:
        """Runs relevant inputs with a build; without time for all, the rest say nothing."""
        finding, results = ran
        if not finding.live and not await self.bisector.may_reopen(finding, commit):
            return
        inputs = inputs_for(finding, self.where)
        for one in [one for one in inputs if self.again or not was_run(one, commit)][:most]:
            if one.name in results:
                continue
            if results and self._late():
                self.notify(f"{finding.key}: no time is left to run all its inputs")
                return
            results[one.name] = await self._run(finding, one, commit)

    async def _note(self, ran: _Ran, commit: str, crashes: Path, fresh: set[str]) -> None:
        """Records how the inputs of a finding ran."""
        finding, results = ran
        failing = [name for name, result in results.items() if result.shown]
        if not finding.live and not failing:
            return
        masks = await self._masks(ran, commit, fresh)
        for name in masks:
            shutil.copyfile(self._path(finding, name), crashes / f"known-{name}")
        if not finding.live and set(failing) <= set(masks):
            return

        def change(known: Finding | None) -> Finding:
            before = known or finding
            after = checked(before, commit, results, masks, self.where)
            if after.input != before.input:
                after = self._showing(after, results.get(after.input), commit)
            return after if finding.live else reopened(after)

        self.catalogue.put(await self.store.update(finding.key, change))
        if not finding.live:
            self.reopened.append(finding.key)

    def _showing(self, finding: Finding, ran: Reproduction | None, commit: str) -> Finding:
        """Returns the record with texts about its input, which has changed."""
        path = self._path(finding, finding.input)
        data = path.read_bytes() if path.exists() else b""
        seen = None if ran is None else ran.last
        return replace(
            finding, excerpt=excerpt_of(data), binary=binary_of(data),
            output="" if seen is None else shorten(seen.output),
            output_of=finding.input, output_in="" if seen is None else commit,
        )  # fmt: skip

    async def _run(self, finding: Finding, one: KeptInput, commit: str) -> Reproduction:
        path = self._path(finding, one.name)
        if not await self.store.fetch_input(finding, path, one.name):
            return Reproduction(0, 0, unclear="is no longer stored")
        slow = finding.kind in Slow
        tries = tries_for(one.shown, one.tried, TRIES)
        known = Signature(finding.kind, finding.title)
        seen = await self.judge.reproduce(path, tries, slow, self._late, known)
        result = apart_from_leaks(seen, finding.kind)
        if result is not seen:
            self._leaking.append(path)
        if result.refused and not result.shown and self.refused_is_fixed and self.works:
            return result._replace(unclear="", refused=False)
        if result.fine and self.sickness:
            return result._replace(unclear=f"proves nothing: {self.sickness}")
        checker = checker_for(one)
        if result.fine and not await self.bisector.has(checker, self.binaries, commit):
            return result._replace(unclear=f"ran, but the build has no {checker}")
        return result

    async def _masks(self, ran: _Ran, commit: str, fresh: set[str]) -> dict[str, str]:
        """Returns the inputs that now show another failure instead, and the key of its finding."""
        masks = {}
        before = {one.name: one for one in inputs_of(ran.finding)}
        for name, result in ran.results.items():
            titles = [signature.title for signature in result.signatures]
            if any(title in ran.finding.names for title in titles):
                continue
            others = [other for title in titles if (other := self.catalogue.named(title))]
            if others:
                masks[name] = others[0].key
            elif titles and self.catalogue.is_live(before[name].masked_by):
                # the finding that hid this one has another name
                masks[name] = before[name].masked_by
            elif titles and await self._hides(ran.finding, before[name], result, commit, fresh):
                masks[name] = key_of(titles[0])
        return masks

    async def _hides(
        self, finding: Finding, one: KeptInput, ran: Reproduction, commit: str, fresh: set[str]
    ) -> bool:
        """Returns whether an unknown failure is another bug that hides this one.

        A finding that was itself found behind another one is not split by where it fails: its place
        may just vary.
        """
        shown, same = ran.signatures[0], SameBug(self.bisector)
        if self._is_another(finding, shown, fresh):
            return True
        if await same.was_behind(finding, shown, ran.last, commit):
            return True
        moved = not self.catalogue.hides(finding.key)
        return moved and await same.is_elsewhere(finding, one.title, shown, commit)

    def _is_another(self, finding: Finding, shown: Signature, fresh: set[str]) -> bool:
        """Returns whether an unknown failure is another bug, not this one renamed.

        An exceeded limit and a failure are never the same bug. A closed finding comes back only
        with a failure like its own.
        """
        if (shown.kind in LIMITS) != (finding.kind in LIMITS):
            return True
        if is_surely_same(shown, finding.names):
            return False
        return not finding.live or (shown.title in fresh and finding.size > 0)

    async def _fresh(self, ran: list[_Ran], crashes: Path) -> set[str]:
        """Returns the failures that have nothing to do with one finding's inputs.

        Inputs of several findings show them, or an input that shows none: a build that fails at its
        start fails with everything.
        """
        shown = Counter(
            title
            for finding, results in ran
            for title in {
                one.title
                for result in results.values()
                for one in result.signatures
                if one.title not in finding.names and self.catalogue.named(one.title) is None
            }
            if not all(self.catalogue.is_live(one.masked_by) for one in inputs_of(finding))
        )
        if not shown:
            return set()
        nothing = self.scratch / "nothing"
        nothing.write_bytes(b"")
        tests = [] if self.works else sorted(crashes.glob("test-*"))[:TESTS]
        found = {title for title, findings in shown.items() if findings > 1}
        for path in [nothing, *tests]:
            seen = await self.judge.look(path, deep=True)
            found |= {seen.signature.title} if seen.signature is not None else set()
        return found

    async def _close(self, finding: Finding, commit: str) -> Finding:
        now = self.clock.now_ms()
        after = await self.store.update(
            finding.key, lambda known: mark_closed(known or finding, commit, now)
        )
        self.catalogue.put(after)
        return after

    async def _comes_after_all(self, finding: Finding, commit: str) -> bool:
        """Returns whether a commit descends from all bad commits: no other commit can have fixed
        the bug.

        It must be on the watched branch: a fix on another one does not count before it is merged.
        Commits that a forced push has left behind do not count. If nothing else showed the bug,
        only the newest commit of a branch can prove that it is gone: its replacements may have it,
        too.
        """
        mirror = self.bisector.mirror
        if self.branches is not None and not await self.branches.leads_through(commit):
            return False
        seen = {finding.found_in, *finding.seen_in}
        there = [one for one in sorted(seen) if not await mirror.is_left(one)]
        if not there:
            return any(newest == commit for _, newest in await mirror.branches_with(commit))
        return all([await self.bisector.comes_after(one, commit) for one in there])

    def _late(self) -> bool:
        return self.clock.now_ms() >= self.deadline_ms

    def _path(self, finding: Finding, name: str) -> Path:
        return self.scratch / f"known-{finding.key}-{name}"


def waiting_for(commit: str) -> str:
    """Returns why a finding is not closed although its own inputs run fine with a commit."""
    return f"inputs of {commit[:12]} wait for triage"


def _turn(finding: Finding, commit: str) -> tuple[bool, bool]:
    """Returns a finding's turn: live ones first, and last those already checked with this
    commit.
    """
    return not finding.live, all(one.checked_in == commit for one in finding.inputs)


def _place_of(title: str) -> tuple[str, str] | None:
    """Returns how and in which innermost function a failure happened, by its title."""
    how, said, stack = title.rpartition(" in ")
    return (how, stack.partition(" < ")[0]) if said else None
