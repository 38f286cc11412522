"""Moves planned jobs on time: an alarm rings when the earliest of them is due."""

from windlass.domain.config import Config
from windlass.domain.rows.steps import FOREVER
from windlass.engine.claim.alarm import Alarm
from windlass.engine.jobs.deadlines import end_late, next_deadline
from windlass.engine.jobs.enqueue import promote_due
from windlass.engine.transaction.background import BackgroundTasks
from windlass.engine.transaction.group_commit import RunStep
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store


class DueJobs:
    """Queues jobs whose time has come and ends those that are past a deadline."""

    def __init__(
        self, store: Store, config: Config, run: RunStep, background: BackgroundTasks
    ) -> None:
        self._store = store
        self._config = config
        self._run = run
        self._background = background
        self._alarm = Alarm(self._now, self._ring)

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

    async def _now(self) -> int:
        return await self._store.read(now_of)


async def now_of(tx: ReadTx) -> int:
    """Returns the store's time."""
    return tx.now
