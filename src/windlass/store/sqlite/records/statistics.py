"""Rows of `statistics`, `usage` and `deadlines`."""

from collections.abc import Sequence

import apsw
import msgspec

from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.ports.store.records.statistics import Looked, Taken
from windlass.store.sqlite.rows import integers
from windlass.store.sqlite.statements import QUERIES


class SqliteStatistics:
    """`StatisticsWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany

    async def completed(self, after: int, before: int, count: int) -> Looked:
        upto: int = self._execute(QUERIES["look_until"], (after, before, count)).get
        rows = self._execute(QUERIES["completed_between"], (after, upto))
        return Looked(upto, list(map(Taken._make, rows)))

    async def move_on(self, source: int, to: int) -> bool:
        return bool(self._execute(QUERIES["move_statistics_on"], (source, to)).fetchall())

    async def position(self) -> int:
        found: int | None = self._execute(QUERIES["statistics_position"]).get
        return found or 0

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        if not kinds:
            return []
        wanted = msgspec.json.encode(sorted(set(kinds))).decode()
        rows = self._execute(QUERIES["statistics_of"], (wanted,))
        return list(map(StatisticsRow._make, rows))

    async def put(self, rows: Sequence[StatisticsRow]) -> None:
        self._executemany(QUERIES["put_statistics"], rows)

    async def forget(self, before: int, keep: int) -> int:
        return len(self._execute(QUERIES["forget_statistics"], (before, keep)).fetchall())

    async def put_usage(self, row: Usage) -> None:
        self._execute(QUERIES["put_usage"], row)

    async def usage(self, jobs: Sequence[int]) -> dict[int, Usage]:
        if not jobs:
            return {}
        rows = self._execute(QUERIES["usage_of"], (integers(sorted(jobs)),))
        return {row[0]: Usage._make(row) for row in rows}


class SqliteDeadlines:
    """`DeadlinesWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        self._executemany(QUERIES["add_deadline"], rows)

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        return [(at, job) for at, job in self._execute(QUERIES["deadlines_passed"], (now, count))]

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None:
        self._executemany(QUERIES["drop_deadline"], rows)
