"""Rows of `series`."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.rows.series import Move, SeriesRow
from windlass.ports.store.records.series import CompletedOn, Completions, Moved
from windlass.store.sqlite.rows import Row
from windlass.store.sqlite.statements import QUERIES


class SqliteSeries:
    """`SeriesWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany

    async def position(self) -> int:
        found: int | None = self._execute(QUERIES["series_position"]).get
        return found or 0

    async def moves(self, after: int, before: int, count: int) -> Moved:
        upto: int = self._execute(QUERIES["look_until"], (after, before, count)).get
        rows = self._execute(QUERIES["moves_between"], (after, upto))
        return Moved(upto, list(map(Move._make, rows)))

    async def moved(
        self, after: int, upto: int, most: int
    ) -> list[tuple[int, int, int, int]] | None:
        if upto - after > most:
            return None
        rows: list[Row] = self._execute(QUERIES["moved_between"], (after, upto)).fetchall()
        return [(shape, source, to, count) for shape, source, to, count in rows]

    async def held_since(self, after: int, upto: int, most: int) -> dict[int, int] | None:
        if upto - after > most:
            return None
        rows: list[Row] = self._execute(QUERIES["held_since"], (after, upto)).fetchall()
        return dict(rows)

    async def completed_on(self, after: int, since: int) -> Completions:
        first: int | None = self._execute(QUERIES["first_event_at"], (after,)).get
        rows = self._execute(QUERIES["completed_on"], (after, since))
        return Completions(first or 0, list(map(CompletedOn._make, rows)))

    async def between(
        self, kinds: Sequence[int], step: int, start: int, end: int
    ) -> list[SeriesRow]:
        found: list[SeriesRow] = []
        for kind in kinds:
            rows = self._execute(QUERIES["series_between"], (kind, step, start, end))
            found += map(SeriesRow._make, rows)
        return found

    async def last(self, kind: int, step: int, before: int) -> SeriesRow | None:
        rows: list[Row] = self._execute(QUERIES["last_series"], (kind, step, before)).fetchall()
        return SeriesRow._make(rows[0]) if rows else None

    async def workers_by_status(self) -> Mapping[int, int]:
        rows: list[Row] = self._execute(QUERIES["workers_by_status"]).fetchall()
        return dict(rows)

    async def pool_workers_by_state(self) -> list[tuple[str, int, int]]:
        rows: list[Row] = self._execute(QUERIES["pool_workers_by_state"]).fetchall()
        return [(name, state, count) for name, state, count in rows]

    async def move_on(self, source: int, to: int) -> bool:
        return bool(self._execute(QUERIES["move_series_on"], (source, to)).fetchall())

    async def put(self, rows: Sequence[SeriesRow]) -> None:
        self._executemany(QUERIES["put_series"], rows)

    async def trim(self, kind: int, step: int, before: int, count: int) -> int:
        bindings = kind, step, before, count
        return len(self._execute(QUERIES["trim_series"], bindings).fetchall())
