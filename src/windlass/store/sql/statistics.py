"""Rows of `statistics`, `usage` and `deadlines`."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.store.sql.session import Role


class Taken(NamedTuple):
    """What one completed attempt took; `peak_memory` is 0 where nobody measured it."""

    shape: int
    run_ms: int
    peak_memory: int
    spec: bytes


class Looked(NamedTuple):
    """The number of the last event that was looked at, and what completed among them."""

    upto: int
    taken: list[Taken]


class StatisticsRead(Role):
    """Reads rows of `statistics` and `usage`, and the completed attempts they are made of."""

    __slots__ = ()

    async def completed(self, after: int, before: int, count: int) -> Looked:
        """Looks at up to `count` events behind number `after` that are not newer than `before`.

        Jobs that completed in them are told, in the order of the events, unless their rows
        have been removed since.
        """
        upto = await self._session.fetch_value("look_until", after, before, count)
        return Looked(upto, await self._session.rows(Taken, "completed_between", after, upto))

    async def position(self) -> int:
        """Returns how far events are accounted for."""
        return await self._session.fetch_value("statistics_position") or 0

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        """Returns them ascending by namespace, queue, kind and measure."""
        if not kinds:
            return []
        wanted = msgspec.json.encode(sorted(set(kinds))).decode()
        return await self._session.rows(StatisticsRow, "statistics_of", wanted)

    async def usage(self, jobs: Sequence[int]) -> dict[int, Usage]:
        if not jobs:
            return {}
        rows = await self._session.rows(Usage, "usage_of", self._session.ids(jobs))
        return {row.job: row for row in rows}


class Statistics(StatisticsRead):
    """Reads and writes rows of `statistics` and `usage`, from completed attempts."""

    __slots__ = ()

    async def move_on(self, source: int, to: int) -> bool:
        """Records that events up to `to` are counted.

        Returns False if another server has advanced it past `source`. True means that this
        transaction holds it until it ends.
        """
        return bool(await self._session.fetch("move_statistics_on", source, to))

    async def put(self, rows: Sequence[StatisticsRow]) -> None:
        """Inserts or replaces, by namespace, queue, kind and measure."""
        for row in rows:
            await self._session.execute("put_statistics", *row)

    async def forget(self, before: int, keep: int) -> int:
        """Removes rows not updated since `before`, and the oldest beyond `keep`.

        Returns how many.
        """
        return len(await self._session.fetch("forget_statistics", before, keep))

    async def put_usage(self, row: Usage) -> None:
        """Inserts or replace, by job: the newest attempt's counts."""
        await self._session.execute("put_usage", *row)


class DeadlinesRead(Role):
    """Reads rows of `deadlines`: jobs that have to start or to end before a time."""

    __slots__ = ()

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        """Returns (at, job) with `at <= now`, earliest first, without locking."""
        rows = await self._session.fetch("deadlines_passed", now, count)
        return [(at, job) for at, job in rows]


class Deadlines(DeadlinesRead):
    """Reads and writes rows of `deadlines`: jobs that have to start or to end before a time."""

    __slots__ = ()

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        """Adds (at, job); a job may have two."""
        await self._session.many("add_deadlines", "ii", sorted(rows))

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None:
        await self._session.many("drop_deadlines", "ii", sorted(rows))
