"""Steps of jobs, and signals."""

from collections.abc import Sequence

from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.store.sql.session import Role


class StepsRead(Role):
    """Reads steps and signals."""

    __slots__ = ()

    async def find(self, job: int, key: str) -> StepRow | None:
        return await self._session.row(StepRow, "find_step", job, key)

    async def count(self, job: int) -> int:
        """Returns how many steps a job has."""
        return int(await self._session.fetch_value("count_steps", job))

    async def of_jobs(self, jobs: Sequence[int]) -> dict[int, list[StepRow]]:
        """Returns the steps of these jobs without their values, in the order they were begun."""
        found: dict[int, list[StepRow]] = {}
        if jobs:
            for row in await self._session.rows(StepRow, "steps_of_jobs", self._session.ids(jobs)):
                found.setdefault(row.job, []).append(row)
        return found

    async def questions(self, after: int, count: int) -> list[StepRow]:
        """Returns pending questions of suspended jobs above an id, ascending by job and key."""
        return await self._session.rows(StepRow, "asked_questions", after, count)

    async def joining(self, after: int, count: int) -> list[StepRow]:
        """Returns pending waits for jobs, of jobs above an id, ascending by job and key."""
        return await self._session.rows(StepRow, "joining_steps", after, count)

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        """Returns the oldest signal above the number `after`, sent from `since` to `until`."""
        wanted = (namespace, name, after, since, until)
        return await self._session.row(SignalRow, "next_signal", *wanted)

    async def signal_of_key(self, namespace: str, name: str, key: str) -> SignalRow | None:
        return await self._session.row(SignalRow, "signal_of_key", namespace, name, key)

    async def last_signal(self, namespace: str, name: str) -> int:
        """Returns the highest number of a signal with this name, or 0."""
        return int(await self._session.fetch_value("last_signal", namespace, name))

    async def count_signals(self, namespace: str, most: int) -> int:
        """Returns how many signals are kept in a namespace; counts up to `most`."""
        return int(await self._session.fetch_value("count_signals", namespace, most))

    async def open_signals(self, count: int) -> list[SignalRow]:
        """Returns signals that some waiting jobs may not have received, oldest first."""
        return await self._session.rows(SignalRow, "open_signals", count)

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        """Returns pending steps that wait for this signal.

        Steps that began after it, or whose wait ended before it, are left out.
        """
        wanted = (signal.namespace, signal.name, signal.id, signal.at, count)
        return await self._session.rows(StepRow, "waiting_steps", *wanted)


class Steps(StepsRead):
    """Writes steps and signals."""

    __slots__ = ()

    async def lock_step(self, job: int, key: str) -> StepRow | None:
        """Locks and reads one step."""
        return await self._session.row(StepRow, "lock_step", job, key)

    async def put(self, row: StepRow) -> None:
        """Writes a step, new or changed."""
        await self._session.execute("put_step", *row)

    async def lock_pending(self, jobs: Sequence[int]) -> list[StepRow]:
        """Locks and reads the pending steps of these jobs."""
        if not jobs:
            return []
        return await self._session.rows(StepRow, "pending_steps", self._session.ids(jobs))

    async def lock_name(self, namespace: str, name: str) -> None:
        """Keeps others from sending this signal, or starting to wait for it, until commit."""
        await self._session.lock("lock_name", namespace, name)

    async def add_signal(self, row: SignalRow) -> int:
        """Writes a signal with a fresh id, and returns the id."""
        return await self._session.insert("insert_signal", row[1:])

    async def close_signal(self, signal: int) -> None:
        """Records that all waiting jobs have received it."""
        await self._session.execute("close_signal", signal)

    async def drop_signals(self, before: int, count: int) -> int:
        """Removes up to `count` signals that were sent before a time; returns how many."""
        return await self._session.execute("drop_signals", before, count)
