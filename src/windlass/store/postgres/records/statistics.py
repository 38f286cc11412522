"""Rows of `statistics`, `usage` and `deadlines`."""

from collections.abc import Sequence

from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.ports.store.records.statistics import Looked, Taken
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Session


class PostgresStatistics:
    """`StatisticsWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def completed(self, after: int, before: int, count: int) -> Looked:
        upto = await self._session.fetch_value("look_until", after, before, count)
        rows = await self._session.fetch("completed_between", after, upto)
        return Looked(upto, list(map(Taken._make, rows)))

    async def move_on(self, source: int, to: int) -> bool:
        return bool(await self._session.fetch("move_statistics_on", source, to))

    async def position(self) -> int:
        found = await self._session.fetch_value("statistics_position")
        return found or 0

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        if not kinds:
            return []
        columns = zip(*set(kinds), strict=True)
        rows = await self._session.fetch("statistics_of", *(list(column) for column in columns))
        return list(map(StatisticsRow._make, rows))

    async def put(self, rows: Sequence[StatisticsRow]) -> None:
        for row in rows:
            await self._session.execute("put_statistics", *row)

    async def forget(self, before: int, keep: int) -> int:
        return len(await self._session.fetch("forget_statistics", before, keep))

    async def put_usage(self, row: Usage) -> None:
        await self._session.execute("put_usage", *row)

    async def usage(self, jobs: Sequence[int]) -> dict[int, Usage]:
        if not jobs:
            return {}
        rows = await self._session.fetch("usage_of", ascending(jobs))
        return {row[0]: Usage._make(row) for row in rows}


class PostgresDeadlines:
    """`DeadlinesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        if rows:
            await self._session.execute("add_deadlines", *_columns(rows))

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        rows = await self._session.fetch("deadlines_passed", now, count)
        return [(at, job) for at, job in rows]

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None:
        if rows:
            await self._session.execute("drop_deadlines", *_columns(rows))


def _columns(rows: Sequence[tuple[int, int]]) -> tuple[str, str]:
    ordered = sorted(rows)
    return integers([at for at, _ in ordered]), integers([job for _, job in ordered])
