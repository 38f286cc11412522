"""Rows of `statistics`, `usage` and `deadlines`."""

from collections.abc import Sequence

import msgspec

from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.ports.store.records.statistics import Looked, Taken
from windlass.store.sql.session import Role


class Statistics(Role):
    """`StatisticsWrite`."""

    __slots__ = ()

    async def completed(self, after: int, before: int, count: int) -> Looked:
        upto = await self._session.fetch_value("look_until", after, before, count)
        return Looked(upto, await self._session.rows(Taken, "completed_between", after, upto))

    async def move_on(self, source: int, to: int) -> bool:
        return bool(await self._session.fetch("move_statistics_on", source, to))

    async def position(self) -> int:
        return await self._session.fetch_value("statistics_position") or 0

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        if not kinds:
            return []
        wanted = msgspec.json.encode(sorted(set(kinds))).decode()
        return await self._session.rows(StatisticsRow, "statistics_of", wanted)

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
        rows = await self._session.rows(Usage, "usage_of", self._session.ids(jobs))
        return {row.job: row for row in rows}


class Deadlines(Role):
    """`DeadlinesWrite`."""

    __slots__ = ()

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        await self._session.many("add_deadlines", "ii", sorted(rows))

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        rows = await self._session.fetch("deadlines_passed", now, count)
        return [(at, job) for at, job in rows]

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None:
        await self._session.many("drop_deadlines", "ii", sorted(rows))
