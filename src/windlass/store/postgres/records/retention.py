"""Removal of old jobs, and of events behind a baseline."""

from collections.abc import Sequence

from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.records import JobRecord
from windlass.ports.store.records.retention import Ended
from windlass.store.ended_jobs import judge_rows
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.records.views import records_of
from windlass.store.postgres.session import Session


class PostgresRetention:
    """`RetentionWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def try_lock(self) -> bool:
        return bool(await self._session.fetch_value("try_retention"))

    async def ended(self, after: int, created_before: int, count: int) -> tuple[list[Ended], int]:
        rows = await self._session.fetch("jobs_behind", after, count)
        return judge_rows([tuple(row) for row in rows], created_before, count)

    async def remove_jobs(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("remove_jobs", ascending(ids))

    async def remove_workflows(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("remove_workflows", ascending(ids))

    async def records(self, ids: Sequence[int]) -> list[JobRecord]:
        if not ids:
            return []
        return records_of(await self._session.fetch("job_records", ascending(ids)))

    async def baseline(self, kind: int, ids: Sequence[int]) -> list[BaselineRow]:
        if not ids:
            return []
        rows = await self._session.fetch("baseline", kind, ascending(ids))
        return list(map(BaselineRow._make, rows))

    async def put_baseline(self, rows: Sequence[BaselineRow]) -> None:
        if rows:
            kinds, ids, bodies = zip(*rows, strict=True)
            args = (integers(kinds), integers(ids), bodies)
            await self._session.execute("put_baseline", *args)

    async def drop_baseline(self, kind: int, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("drop_baseline", kind, ascending(ids))

    async def trim_events(self, up_to: int) -> int:
        return await self._session.execute("trim_events", up_to)

    async def forget_commits(self) -> None:
        await self._session.execute("forget_commits")
