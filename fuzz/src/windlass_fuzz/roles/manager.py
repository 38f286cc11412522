"""The manager: finds commits worth building and maintains the schedule.

A run reads, decides and writes file by file, so that a crash between two writes loses nothing: a
commit is queued before it counts as checked, and scheduled before it leaves `built`. Running the
manager again completes what is left.

With several branches, each has its own progress and its own schedule. Unbuilt commits of a branch
wait in `state.json`, so that a commit that another branch is building or has built is scheduled for
this one too.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.buckets.layout import BUILDS_KEPT_MS, builds_prefix, check_commit
from windlass_fuzz.config.branch_names import matches
from windlass_fuzz.config.solver_file import CommitSettings
from windlass_fuzz.sources.commits import Commit, CommitSource, History, Watched
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import (
    BranchProgress,
    BuildQueue,
    CommitTimes,
    Schedule,
    State,
)
from windlass_fuzz.state.pipeline import Pipeline

DAY_MS: Final = 86_400_000
LOOK_BACK: Final = 100  # newest commits of a branch whose order we know, and that can come back
MAX_REFILL: Final = 32  # commits whose builds are looked for when too few are scheduled
WAITING: Final = 1_000  # maximum commits of a branch that wait for their builds
TIMED: Final = 1_000  # commits whose times we remember
UNWATCHED: Final = 100  # unwatched branches that we remember


class BranchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found on one of several branches."""

    name: str
    head: str
    fresh: str = ""
    looked_at: int = 0
    queued: tuple[str, ...] = ()


class ManagerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run; lists of commits are oldest first.

    `head` and `fresh` belong to the first branch; `branches` has all if there are several. `gone`
    are branches that no longer exist, or are named in the file but do not exist. `rebuilt` are
    queued again because the builds of some of their combinations were lost.
    """

    head: str = ""
    fresh: str = ""
    looked_at: int = 0
    passed_over: tuple[str, ...] = ()
    queued: tuple[str, ...] = ()
    scheduled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    made_room: tuple[str, ...] = ()
    swept: int = 0
    branches: tuple[BranchReport, ...] = ()
    left_out: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()


class _Changes(NamedTuple):
    """What a run changed in the schedule; `unwatched` commits are on no watched branch."""

    scheduled: tuple[str, ...]
    dropped: tuple[str, ...]
    made_room: tuple[str, ...]
    unwatched: tuple[str, ...]


@dataclass(slots=True)
class _Line:
    """One watched branch during a run; `handled` are commits that no longer wait."""

    name: str
    source: CommitSource
    began: BranchProgress
    history: History = field(default_factory=lambda: History("", ()))
    taken: list[Commit] = field(default_factory=list)
    passed: list[Commit] = field(default_factory=list)
    queued: tuple[str, ...] = ()
    waiting: list[str] = field(default_factory=list)
    handled: set[str] = field(default_factory=set)
    recent: tuple[Commit, ...] = ()

    @property
    def left(self) -> list[str]:
        """Returns the commits that still wait."""
        return [commit for commit in self.waiting if commit not in self.handled]


class Manager:
    """The manager of one solver; `branches` are names and patterns."""

    def __init__(
        self, pipeline: Pipeline, commits: CommitSource, settings: CommitSettings,
        branches: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._pipeline = pipeline
        self._commits = commits
        self._settings = settings
        self._wanted = tuple(branches)
        self._code: dict[str, bool] = {}

    @property
    def _several(self) -> bool:
        return len(self._wanted) > 1

    async def run_once(self) -> ManagerReport:
        """Queues new commits, updates the schedule, and then records the last checked commit."""
        state = await self._pipeline.state.read()
        now_ms = self._pipeline.now_ms()
        watched = await self._commits.watched(self._wanted) if self._several else Watched(())
        lines = self._lines(watched, state)
        for line in lines:
            await self._find(line, now_ms)
        queued = [commit for line in lines for commit in line.queued]
        filled, again = await self._fill(lines)
        queued += again
        changes = await self._schedule(lines, filled)
        rebuilt = await self._rebuild_lost()
        swept = await self._pipeline.bucket.delete_expired(
            builds_prefix(self._pipeline.solver), BUILDS_KEPT_MS, now_ms
        )
        gone = self._gone(watched, state, now_ms)
        await self._record_times(queued, changes.scheduled)
        await self._record_progress(lines, watched, gone, now_ms)
        first = lines[0].history
        return ManagerReport(
            head=first.head, fresh=first.fresh, looked_at=sum(len(line.taken) for line in lines),
            passed_over=tuple(commit.hash for line in lines for commit in line.passed),
            queued=tuple(dict.fromkeys(queued)), scheduled=changes.scheduled,
            dropped=changes.dropped, rebuilt=rebuilt, made_room=changes.made_room,
            unwatched=changes.unwatched, swept=swept, branches=self._about(lines),
            left_out=watched.left_out, gone=tuple(gone),
        )  # fmt: skip

    async def add(self, commit: str) -> tuple[str, bool]:
        """Queues a commit that a person asked for, whatever it changes.

        Returns its full hash, and whether it was newly queued.
        """
        name = await self._commits.resolve(check_commit(commit))
        written = await self._pipeline.queue.update(
            lambda queue: rules.enqueue_by_hand(queue, name)
        )
        return name, written.applied

    def _lines(self, watched: Watched, state: State) -> list[_Line]:
        """Returns the branches of this run with their progress."""
        if not self._several:
            return [_Line(rules.ONLY, self._commits, _progress_of_first(state, self._wanted))]
        return [
            _Line(head.name, self._commits.on(head), _progress(state, head.name, number == 0))
            for number, head in enumerate(watched.heads)
        ]

    async def _find(self, line: _Line, now_ms: int) -> None:
        """Queues the new commits of a branch."""
        last = line.began.last_checked_commit
        line.history = await line.source.since(last, self._settings.fresh)
        line.taken, line.passed = self._split_by_age(line.history, line.began, now_ms)
        line.queued = await self._queue(line.taken)
        if self._several:
            found = [commit.hash for commit in line.taken if self._code.get(commit.hash)]
            line.waiting = list(dict.fromkeys([*line.began.waiting, *found]))[-WAITING:]

    def _split_by_age(
        self, history: History, progress: BranchProgress, now_ms: int
    ) -> tuple[list[Commit], list[Commit]]:
        """Returns the commits that count, and those that are too old.

        "Today" starts a day before the last check. So no commit is lost between the last check of
        one day and the first of the next, nor one made before midnight and pushed after it.
        """
        commits = list(history.commits)
        if self._settings.window == "all" or history.fresh:
            return commits, []
        looked_ms = progress.checked_at_ms or history.last_ms or now_ms
        cutoff = start_of_day(min(looked_ms, now_ms)) - DAY_MS
        return (
            [commit for commit in commits if commit.at_ms >= cutoff],
            [commit for commit in commits if commit.at_ms < cutoff],
        )

    async def _queue(self, commits: Iterable[Commit]) -> tuple[str, ...]:
        wanted = [commit.hash for commit in commits if await self._touches_code(commit.hash)]
        if not wanted:
            return ()
        written = await self._pipeline.queue.update(lambda queue: rules.enqueue_new(queue, wanted))
        before = frozenset(written.before.queue)
        return tuple(c for c in wanted if c in written.value.queue and c not in before)

    async def _touches_code(self, commit: str) -> bool:
        """Returns whether a commit changes code; checked once for a commit on several branches."""
        if commit not in self._code:
            files = await self._commits.files(commit)
            self._code[commit] = rules.touches_code(files, self._settings.extensions)
        return self._code[commit]

    async def _refill(self, line: _Line) -> tuple[list[str], list[str]]:
        """Fills a schedule that is too short; returns commits with builds, and those to build.

        Loss and expiry shorten a schedule. Built commits that left it come back at once. If nothing
        is built at the moment, the newest commits are also built again. Only commits that were
        queued before come back.
        """
        queue = await self._pipeline.queue.read()
        own = rules.schedule_of(await self._pipeline.schedule.read(), line.name)
        ready, _ = await self._split_by_binaries(e.hash for e in own)
        coming = line.left if self._several else [*queue.queue, *queue.built]
        built, _ = await self._split_by_binaries(c for c in coming if c not in queue.queue)
        short = rules.MINIMUM - len(ready) - len(built)
        if short <= 0:
            return [], []
        known = {*ready, *coming, *queue.failed}
        known_before = {*queue.seen} - known
        if not known_before:
            return [], []
        recent = [c.hash for c in reversed(await self._recent(line)) if c.hash in known_before]
        there, gone = await self._split_by_binaries(recent[:MAX_REFILL])
        quiet = not (line.taken or coming)
        again = [c for c in recent[:short] if c in gone] if quiet else []
        return there[:short][::-1], again[::-1]

    async def _fill(self, lines: Sequence[_Line]) -> tuple[list[str], list[str]]:
        """Fills all schedules; returns commits for the only one, and commits that were queued."""
        ready: list[str] = []
        queued: list[str] = []
        for line in lines:
            there, again = await self._refill(line)
            if self._several:
                line.waiting += [*there, *again]
            else:
                ready += there
            queued += await self._queue_again(again)
        return ready, queued

    async def _queue_again(self, commits: Iterable[str]) -> list[str]:
        """Queues commits whose builds are gone; returns those that were in no list."""
        queued: list[str] = []
        for name in commits:
            written = await self._pipeline.queue.update(lambda q, n=name: rules.enqueue_again(q, n))  # type: ignore[misc]
            queued += [name] if written.applied else []
        return queued

    async def _recent(self, line: _Line) -> Sequence[Commit]:
        """Returns the newest commits of a branch, oldest first; asks for them once."""
        if not line.recent:
            line.recent = (await line.source.since(None, LOOK_BACK)).commits
        return line.recent

    async def _history_order(
        self, lines: Sequence[_Line], commits: Iterable[str]
    ) -> dict[str, tuple[int, int]]:
        """Returns the place of each commit in history: by branch, and by time between branches.

        A commit never counts as older than those before it on its branch, whatever its clock said.
        """
        order: dict[str, tuple[int, int]] = {}
        for line in lines:
            newest_ms = 0
            for place, commit in enumerate(await self._recent(line)):
                newest_ms = max(newest_ms, commit.at_ms)
                order.setdefault(commit.hash, (newest_ms, place))
        for name in commits:
            if name not in order:
                order[name] = (await self._commits.time_of(name), 0)
        return order

    async def _schedule(self, lines: Sequence[_Line], filled: Sequence[str]) -> _Changes:
        """Schedules built commits in the order of history, whatever the order of their builds.

        Drops those without binaries or no longer on a watched branch.
        """
        ready, gone = await self._split_by_binaries((await self._pipeline.queue.read()).built)
        _, missing = await self._split_by_binaries(
            e.hash for e in await self._pipeline.schedule.read()
        )
        # Read again: another manager may have moved some in the meantime.
        queue = await self._pipeline.queue.read()
        ready = [commit for commit in ready if commit in queue.built]
        names = [line.name for line in lines] if self._several else self._wanted
        there = rules.relabel(await self._pipeline.schedule.read(), names, named=self._several)
        listed = {entry.hash for entry in there}
        added = await self._for_branches(lines, [c for c in ready if c not in listed], queue)
        added += [(commit, rules.ONLY) for commit in filled]
        both = [*listed, *(commit for commit, _ in added)]
        order = await self._history_order(lines, both) if added else {}
        added.sort(key=lambda one: order.get(one[0], (0, 0)))

        def change(schedule: Schedule) -> Schedule:
            schedule = rules.drop_from_schedule(schedule, missing)
            schedule = rules.relabel(schedule, names, named=self._several)
            schedule = rules.in_history_order(schedule, order)
            for commit, branch in added:
                schedule = rules.add_to_schedule(schedule, commit, branch)
            return rules.in_history_order(schedule, order)

        written = await self._pipeline.schedule.update(change)
        if ready or gone:
            done = (*ready, *gone)
            await self._pipeline.queue.update(lambda queue: rules.take_from_built(queue, done))
        before = {entry.hash for entry in written.before}
        after = {entry.hash for entry in written.value}
        watched = {e.hash for e in rules.relabel(written.before, names, named=self._several)}
        left = [c for c in before if c not in after and c not in missing]
        return _Changes(
            tuple(dict.fromkeys(commit for commit, _ in added if commit not in before)),
            (*missing, *gone),
            tuple(e.hash for e in written.before if e.hash in left and e.hash in watched),
            tuple(e.hash for e in written.before if e.hash in left and e.hash not in watched),
        )

    async def _rebuild_lost(self) -> tuple[str, ...]:
        """Queues scheduled commits again if the builds of some of their combinations are gone.

        They stay in the schedule: their other combinations can run.
        """
        if not self._pipeline.matrix:
            return ()
        scheduled = await self._pipeline.schedule.read()
        lost = [e.hash for e in scheduled if (await self._pipeline.built(e.hash)).lost]
        return tuple(await self._queue_again(lost))

    async def _for_branches(
        self, lines: Sequence[_Line], ready: Sequence[str], queue: BuildQueue
    ) -> list[tuple[str, str]]:
        """Returns which commits are added to the schedules of which branches.

        A commit that no branch waits for was added by hand, and is scheduled for the first branch.
        """
        if not self._several:
            return [(commit, rules.ONLY) for commit in ready]
        expected = {commit for line in lines for commit in line.waiting}
        added = [(commit, lines[0].name) for commit in ready if commit not in expected]
        for line in lines:
            for commit in line.left:
                if commit in queue.queue:
                    continue
                line.handled.add(commit)
                if commit in queue.failed:
                    continue
                if commit in ready or await self._pipeline.has_build(commit):
                    added.append((commit, line.name))
        return added

    async def _split_by_binaries(self, commits: Iterable[str]) -> tuple[list[str], list[str]]:
        """Separates commits with both binaries from those without."""
        there: list[str] = []
        gone: list[str] = []
        for commit in commits:
            (there if await self._pipeline.has_build(commit) else gone).append(commit)
        return there, gone

    def _gone(self, watched: Watched, state: State, now_ms: int) -> dict[str, BranchProgress]:
        """Returns the matching branches that do not exist; patterns forget theirs after a week."""
        there = {*watched.names, *watched.left_out}
        known = {
            name: one
            for name, one in state.branches.items()
            if name not in there and any(matches(wanted, name) for wanted in self._wanted)
        }
        gone = {**{name: BranchProgress() for name in watched.missing}, **known}
        since = {
            name: msgspec.structs.replace(
                one, gone_at_ms=one.gone_at_ms or now_ms, left_out=False, waiting=()
            )
            for name, one in gone.items()
        }
        return {
            name: one
            for name, one in since.items()
            if self._several and (name in self._wanted or now_ms - one.gone_at_ms < BUILDS_KEPT_MS)
        }

    async def _record_times(self, pushed: Iterable[str], scheduled: Iterable[str]) -> None:
        """Records for time lines when commits were seen for the first time, and scheduled.

        Nothing depends on it, so that a run may fail to write it.
        """
        now_ms = self._pipeline.now_ms()

        def with_these(known: Mapping[str, int], commits: Iterable[str]) -> dict[str, int]:
            both = {**dict.fromkeys(commits, now_ms), **known}
            return dict(sorted(both.items(), key=lambda one: one[1])[-TIMED:])

        def change(times: CommitTimes) -> CommitTimes:
            return CommitTimes(
                with_these(times.pushed, pushed), with_these(times.scheduled, scheduled)
            )

        with suppress(WindlassError):
            await self._pipeline.times.update(change)

    async def _record_progress(
        self, lines: Sequence[_Line], watched: Watched, gone: Mapping[str, BranchProgress],
        now_ms: int,
    ) -> None:  # fmt: skip
        """Records each head as checked, unless another manager did so in the meantime."""

        def change(state: State) -> State:
            if not self._several:
                now = _progress_of_first(state, self._wanted)
                if now.last_checked_commit != lines[0].began.last_checked_commit:
                    return state
                head = lines[0].history.head
                return state._replace(last_checked_commit=head, checked_at_ms=now_ms, branches={})
            after = {line.name: _after(line, state, n == 0, now_ms) for n, line in enumerate(lines)}
            aside = {
                name: msgspec.structs.replace(
                    state.branches.get(name, BranchProgress()), left_out=True, gone_at_ms=0,
                    waiting=(),
                )
                for name in watched.left_out[:UNWATCHED]
            }  # fmt: skip
            first = after[lines[0].name]
            return state._replace(
                last_checked_commit=first.last_checked_commit, checked_at_ms=first.checked_at_ms,
                branches={**after, **aside, **dict(list(gone.items())[:UNWATCHED])},
            )  # fmt: skip

        await self._pipeline.state.update(change)

    def _about(self, lines: Sequence[_Line]) -> tuple[BranchReport, ...]:
        if not self._several:
            return ()
        return tuple(
            BranchReport(
                name=line.name, head=line.history.head, fresh=line.history.fresh,
                looked_at=len(line.taken), queued=line.queued,
            )
            for line in lines
        )  # fmt: skip


def start_of_day(ms: int) -> int:
    """Returns the last midnight before a time, in UTC."""
    return ms - ms % DAY_MS


def _progress_of_first(state: State, wanted: Sequence[str]) -> BranchProgress:
    """Returns the progress on the only branch; it may have been one of several before."""
    if wanted and wanted[0] in state.branches:
        known = state.branches[wanted[0]]
        return BranchProgress(known.last_checked_commit, known.checked_at_ms)
    return BranchProgress(state.last_checked_commit, state.checked_at_ms)


def _progress(state: State, name: str, first: bool) -> BranchProgress:
    """Returns the progress on one of several branches; the first may have been the only one."""
    if first and not state.branches:
        return BranchProgress(state.last_checked_commit, state.checked_at_ms)
    return state.branches.get(name, BranchProgress())


def _after(line: _Line, state: State, first: bool, now_ms: int) -> BranchProgress:
    """Returns the progress on a branch after this run."""
    known = _progress(state, line.name, first)
    if known.last_checked_commit != line.began.last_checked_commit:
        left = tuple(commit for commit in known.waiting if commit not in line.handled)
        return msgspec.structs.replace(known, waiting=left, left_out=False, gone_at_ms=0)
    return BranchProgress(line.history.head, now_ms, tuple(line.left))
