"""Steps of jobs, and signals."""

from collections.abc import Sequence

from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.store.postgres.columns import ascending
from windlass.store.postgres.session import Session


class PostgresSteps:
    """`StepsWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def find(self, job: int, key: str) -> StepRow | None:
        rows = await self._session.fetch("find_step", job, key)
        return StepRow._make(rows[0]) if rows else None

    async def lock_step(self, job: int, key: str) -> StepRow | None:
        rows = await self._session.fetch("lock_step", job, key)
        return StepRow._make(rows[0]) if rows else None

    async def count(self, job: int) -> int:
        return int(await self._session.fetch_value("count_steps", job))

    async def of_jobs(self, jobs: Sequence[int]) -> dict[int, list[StepRow]]:
        found: dict[int, list[StepRow]] = {}
        if jobs:
            for row in await self._session.fetch("steps_of_jobs", ascending(jobs)):
                found.setdefault(row[0], []).append(StepRow._make(row))
        return found

    async def questions(self, after: int, count: int) -> list[StepRow]:
        rows = await self._session.fetch("asked_questions", after, count)
        return list(map(StepRow._make, rows))

    async def joining(self, after: int, count: int) -> list[StepRow]:
        return list(map(StepRow._make, await self._session.fetch("joining_steps", after, count)))

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        rows = await self._session.fetch("next_signal", namespace, name, after, since, until)
        return SignalRow._make(rows[0]) if rows else None

    async def signal_of_key(self, namespace: str, name: str, key: str) -> SignalRow | None:
        rows = await self._session.fetch("signal_of_key", namespace, name, key)
        return SignalRow._make(rows[0]) if rows else None

    async def last_signal(self, namespace: str, name: str) -> int:
        return int(await self._session.fetch_value("last_signal", namespace, name))

    async def count_signals(self, namespace: str, most: int) -> int:
        return int(await self._session.fetch_value("count_signals", namespace, most))

    async def open_signals(self, count: int) -> list[SignalRow]:
        return list(map(SignalRow._make, await self._session.fetch("open_signals", count)))

    async def put(self, row: StepRow) -> None:
        await self._session.execute("put_step", *row)

    async def lock_pending(self, jobs: Sequence[int]) -> list[StepRow]:
        if not jobs:
            return []
        rows = await self._session.fetch("pending_steps", ascending(jobs))
        return list(map(StepRow._make, rows))

    async def lock_name(self, namespace: str, name: str) -> None:
        await self._session.execute("lock_name", namespace, name)

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        wanted = (signal.namespace, signal.name, signal.id, signal.at, count)
        rows = await self._session.fetch("waiting_steps", *wanted)
        return list(map(StepRow._make, rows))

    async def add_signal(self, row: SignalRow) -> int:
        return int(await self._session.fetch_value("insert_signal", *row[1:]))

    async def close_signal(self, signal: int) -> None:
        await self._session.execute("close_signal", signal)

    async def drop_signals(self, before: int, count: int) -> int:
        return await self._session.execute("drop_signals", before, count)
