"""What an engine starts beside its commands: background tasks, and timers in the store's time.

A timer lets a backoff of five seconds end without waiting for a loop. One moves jobs when the
earliest of them is due; one wakes workers when a rate lets jobs start again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from windlass.domain.config import Config
from windlass.domain.rows.steps import FOREVER
from windlass.engine.jobs.deadlines import end_late, next_deadline
from windlass.engine.jobs.places import promote_due
from windlass.engine.transaction.group_commit import RunStep
from windlass.store.store import Store


class BackgroundTasks:
    """Starts tasks and keeps them until they end.

    Errors are dropped: if the store was unavailable, the loops take up the work again.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Starts a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def finish(self) -> None:
        """Waits until no task is left, including those that were started meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()


class Alarm:
    """Rings once, at the earliest time that was set."""

    def __init__(self, now: Callable[[], Awaitable[int]], ring: Callable[[], None]) -> None:
        self._now = now
        self._ring = ring
        self._at: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def set(self, at: int) -> None:
        """Rings at the store's time `at`, unless it rings earlier."""
        if self.is_set_before(at):
            return
        self._cancel()
        self._at = at
        try:
            now = await self._now()
        except BaseException:
            if self._at == at:
                self._at = None  # another call may set it; the loops check anyway
            raise
        if self._at == at and not self._closed:
            delay = max(0, at - now) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._go_off)

    def is_set_before(self, at: int) -> bool:
        """Returns whether setting it to `at` would change nothing."""
        return self._closed or (self._at is not None and self._at <= at)

    def close(self) -> None:
        """Cancels the timer for good."""
        self._closed = True
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_off(self) -> None:
        self._at = None
        self._timer = None
        self._ring()


class RateTimer:
    """Calls `ring` for each shape when it opens."""

    def __init__(
        self,
        now: Callable[[], Awaitable[int]],
        ring: Callable[[int], None],
        background: BackgroundTasks,
    ) -> None:
        self._ring = ring
        self._background = background
        self._times: dict[int, int] = {}  # by shape
        self._alarm = Alarm(now, self._go_off)

    def set(self, times: Mapping[int, int]) -> None:
        """Remembers the store's time at which each of these shapes opens."""
        self._times.update(times)
        self._set_alarm()

    def close(self) -> None:
        """Stops the timer for good."""
        self._times.clear()
        self._alarm.close()

    def _set_alarm(self) -> None:
        at = min(self._times.values(), default=None)
        if at is not None and not self._alarm.is_set_before(at):
            self._background.start(self._alarm.set(at))

    def _go_off(self) -> None:
        if not self._times:
            return
        first = min(self._times.values())
        for shape in [shape for shape, at in self._times.items() if at <= first]:
            del self._times[shape]
            self._ring(shape)
        self._set_alarm()


class DueJobs:
    """Queues jobs whose time has come and ends those that are past a deadline."""

    def __init__(
        self, store: Store, config: Config, run: RunStep, background: BackgroundTasks
    ) -> None:
        self._store = store
        self._config = config
        self._run = run
        self._background = background
        self._alarm = Alarm(store.now, self._ring)

    def set_alarm(self, due_at: int | None) -> None:
        """Checks again at this time, unless the alarm rings earlier anyway."""
        if due_at is not None and not self._alarm.is_set_before(due_at):
            self._background.start(self._alarm.set(due_at))

    async def set_next_alarm(self) -> None:
        """Reads when the next job is due from the store, and sets the alarm."""
        due = await self._store.read(lambda tx: tx.places.next_due())
        deadline = await self._store.read(next_deadline)
        self.set_alarm(min((at for at in (due, deadline) if at and at < FOREVER), default=None))

    async def move(self) -> int:
        """Moves the jobs that are due or late, sets the next alarm, and returns how many."""
        moved = 0
        while some := await self._run(lambda work: promote_due(work, self._config.chunk_rows)):
            moved += some
        while some := await self._run(end_late):
            moved += some
        await self.set_next_alarm()
        return moved

    def close(self) -> None:
        """Cancels the timer for good."""
        self._alarm.close()

    def _ring(self) -> None:
        self._background.start(self.move())
