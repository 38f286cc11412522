"""The manager: finds commits worth building and maintains the schedule.

A run reads, decides and writes file by file, so that a crash between two writes loses nothing:
a commit is queued before it counts as checked, and scheduled before it leaves `built`. Running
the manager again completes what is left.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from windlass.fuzzing.buckets.layout import BUILDS_KEPT_MS, builds_prefix, check_commit
from windlass.fuzzing.config.solver_file import CommitSettings
from windlass.fuzzing.sources.commits import Commit, CommitSource, History
from windlass.fuzzing.state import rules
from windlass.fuzzing.state.documents import Schedule, State
from windlass.fuzzing.state.pipeline import Pipeline

DAY_MS: Final = 86_400_000
LOOK_BACK: Final = 8  # commits that are looked at when too few are left


class ManagerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run; lists of commits are oldest first."""

    head: str = ""
    fresh: str = ""
    looked_at: int = 0
    passed_over: tuple[str, ...] = ()
    queued: tuple[str, ...] = ()
    scheduled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    made_room: tuple[str, ...] = ()
    swept: int = 0


class Manager:
    """The manager of one solver."""

    def __init__(self, pipeline: Pipeline, commits: CommitSource, settings: CommitSettings) -> None:
        self._pipeline = pipeline
        self._commits = commits
        self._settings = settings

    async def run_once(self) -> ManagerReport:
        """Queues new commits, updates the schedule, and then records the last checked commit."""
        state = await self._pipeline.state.read()
        now_ms = self._pipeline.now_ms()
        history = await self._commits.since(state.last_checked_commit, self._settings.fresh)
        taken, passed = self._split_by_age(history, state, now_ms)
        queued = await self._queue(taken)
        if not taken:
            queued = await self._refill()
        scheduled, dropped, made_room = await self._schedule()
        swept = await self._pipeline.bucket.delete_expired(
            builds_prefix(self._pipeline.solver), BUILDS_KEPT_MS, now_ms
        )
        await self._record_progress(state, history.head, now_ms)
        return ManagerReport(
            head=history.head, fresh=history.fresh, looked_at=len(taken),
            passed_over=tuple(commit.hash for commit in passed), queued=queued,
            scheduled=scheduled, dropped=dropped, made_room=made_room, swept=swept,
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

    def _split_by_age(
        self, history: History, state: State, now_ms: int
    ) -> tuple[list[Commit], list[Commit]]:
        """Returns the commits that count, and those that are too old.

        "Today" starts a day before the last check. So no commit is lost between the last check
        of one day and the first of the next, nor one made before midnight and pushed after it.
        """
        commits = list(history.commits)
        if self._settings.window == "all" or history.fresh:
            return commits, []
        looked_ms = state.checked_at_ms or history.last_ms or now_ms
        cutoff = start_of_day(min(looked_ms, now_ms)) - DAY_MS
        return (
            [commit for commit in commits if commit.at_ms >= cutoff],
            [commit for commit in commits if commit.at_ms < cutoff],
        )

    async def _queue(self, commits: Iterable[Commit]) -> tuple[str, ...]:
        wanted = [
            commit.hash
            for commit in commits
            if rules.touches_code(await self._commits.files(commit.hash), self._settings.extensions)
        ]
        if not wanted:
            return ()
        written = await self._pipeline.queue.update(lambda queue: rules.enqueue_new(queue, wanted))
        before = frozenset(written.before.queue)
        return tuple(c for c in wanted if c in written.value.queue and c not in before)

    async def _refill(self) -> tuple[str, ...]:
        """Queues the newest commits again if nothing else happens and too few are left to fuzz.

        Builds expire, so after some quiet days nothing would be left. Only commits that were
        queued before come back; those whose builds still exist go straight to the schedule.
        """
        queue = await self._pipeline.queue.read()
        ready, _ = await self._split_by_binaries(
            e.hash for e in await self._pipeline.schedule.read()
        )
        short = rules.MINIMUM - len(ready)
        if queue.queue or queue.built or short <= 0:
            return ()
        wanted = await self._newest(queue.seen, {*ready, *queue.failed}, short)
        there, gone = await self._split_by_binaries(wanted)
        for name in gone:
            await self._pipeline.queue.update(lambda q, n=name: rules.enqueue_by_hand(q, n))  # type: ignore[misc]
        for name in there:
            await self._pipeline.schedule.update(
                lambda schedule, n=name: rules.add_to_schedule(schedule, n)  # type: ignore[misc]
            )
        return tuple(gone)

    async def _newest(self, seen: Collection[str], known: Collection[str], most: int) -> list[str]:
        """Returns the newest commits that were queued before and are not known, oldest first."""
        found: list[str] = []
        for commit in reversed((await self._commits.since(None, LOOK_BACK)).commits):
            if commit.hash in seen and commit.hash not in known and len(found) < most:
                found.insert(0, commit.hash)
        return found

    async def _schedule(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Returns what was scheduled, dropped without binaries, and removed to make room."""
        ready, gone = await self._split_by_binaries((await self._pipeline.queue.read()).built)
        _, missing = await self._split_by_binaries(
            e.hash for e in await self._pipeline.schedule.read()
        )
        # Read again: another manager may have moved some in the meantime.
        built = (await self._pipeline.queue.read()).built
        ready = [commit for commit in ready if commit in built]

        def change(schedule: Schedule) -> Schedule:
            schedule = rules.drop_from_schedule(schedule, missing)
            for commit in ready:
                schedule = rules.add_to_schedule(schedule, commit)
            return schedule

        written = await self._pipeline.schedule.update(change)
        if ready or gone:
            done = (*ready, *gone)
            await self._pipeline.queue.update(lambda queue: rules.take_from_built(queue, done))
        before = {entry.hash for entry in written.before}
        after = {entry.hash for entry in written.value}
        made_room = tuple(
            e.hash for e in written.before if e.hash not in after and e.hash not in missing
        )
        scheduled = tuple(commit for commit in ready if commit not in before)
        return scheduled, (*missing, *gone), made_room

    async def _split_by_binaries(self, commits: Iterable[str]) -> tuple[list[str], list[str]]:
        """Separates commits with both binaries from those without."""
        there: list[str] = []
        gone: list[str] = []
        for commit in commits:
            (there if await self._pipeline.has_build(commit) else gone).append(commit)
        return there, gone

    async def _record_progress(self, began: State, head: str, now_ms: int) -> None:
        """Records the head as checked, unless another manager did so in the meantime."""

        def change(state: State) -> State:
            if state.last_checked_commit != began.last_checked_commit:
                return state
            return state._replace(last_checked_commit=head, checked_at_ms=now_ms)

        await self._pipeline.state.update(change)


def start_of_day(ms: int) -> int:
    """Returns the last midnight before a time, in UTC."""
    return ms - ms % DAY_MS
