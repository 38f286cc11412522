"""Steps of jobs, and signals."""

from collections.abc import Sequence

from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.store.sql.session import Role


class Steps(Role):
    """`StepsWrite`."""

    __slots__ = ()

    async def find(self, job: int, key: str) -> StepRow | None:
        return await self._session.row(StepRow, "find_step", job, key)

    async def lock_step(self, job: int, key: str) -> StepRow | None:
        return await self._session.row(StepRow, "lock_step", job, key)

    async def count(self, job: int) -> int:
        return int(await self._session.fetch_value("count_steps", job))

    async def of_jobs(self, jobs: Sequence[int]) -> dict[int, list[StepRow]]:
        found: dict[int, list[StepRow]] = {}
        if jobs:
            for row in await self._session.rows(StepRow, "steps_of_jobs", self._session.ids(jobs)):
                found.setdefault(row.job, []).append(row)
        return found

    async def questions(self, after: int, count: int) -> list[StepRow]:
        return await self._session.rows(StepRow, "asked_questions", after, count)

    async def joining(self, after: int, count: int) -> list[StepRow]:
        return await self._session.rows(StepRow, "joining_steps", after, count)

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        wanted = (namespace, name, after, since, until)
        return await self._session.row(SignalRow, "next_signal", *wanted)

    async def signal_of_key(self, namespace: str, name: str, key: str) -> SignalRow | None:
        return await self._session.row(SignalRow, "signal_of_key", namespace, name, key)

    async def last_signal(self, namespace: str, name: str) -> int:
        return int(await self._session.fetch_value("last_signal", namespace, name))

    async def count_signals(self, namespace: str, most: int) -> int:
        return int(await self._session.fetch_value("count_signals", namespace, most))

    async def open_signals(self, count: int) -> list[SignalRow]:
        return await self._session.rows(SignalRow, "open_signals", count)

    async def put(self, row: StepRow) -> None:
        await self._session.execute("put_step", *row)

    async def lock_pending(self, jobs: Sequence[int]) -> list[StepRow]:
        if not jobs:
            return []
        return await self._session.rows(StepRow, "pending_steps", self._session.ids(jobs))

    async def lock_name(self, namespace: str, name: str) -> None:
        await self._session.lock("lock_name", namespace, name)

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        wanted = (signal.namespace, signal.name, signal.id, signal.at, count)
        return await self._session.rows(StepRow, "waiting_steps", *wanted)

    async def add_signal(self, row: SignalRow) -> int:
        return await self._session.insert("insert_signal", row[1:])

    async def close_signal(self, signal: int) -> None:
        await self._session.execute("close_signal", signal)

    async def drop_signals(self, before: int, count: int) -> int:
        return await self._session.execute("drop_signals", before, count)
