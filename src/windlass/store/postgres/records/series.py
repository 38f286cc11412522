"""Rows of `series`."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.series import Move, SeriesRow
from windlass.ports.store.records.series import CompletedOn, Completions, Moved
from windlass.store.postgres.session import Session


class PostgresSeries:
    """`SeriesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def position(self) -> int:
        found = await self._session.fetch_value("series_position")
        return found or 0

    async def moves(self, after: int, before: int, count: int) -> Moved:
        upto = await self._session.fetch_value("look_until", after, before, count)
        rows = await self._session.fetch("moves_between", after, upto)
        return Moved(upto, list(map(Move._make, rows)))

    async def moved(
        self, after: int, upto: int, most: int
    ) -> list[tuple[int, int, int, int]] | None:
        if upto - after > most:
            return None
        rows = await self._session.fetch("moved_between", after, upto)
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    async def held_since(self, after: int, upto: int, most: int) -> dict[int, int] | None:
        if upto - after > most:
            return None
        rows = await self._session.fetch("held_since", after, upto)
        return {row[0]: row[1] for row in rows}

    async def completed_on(self, after: int, since: int) -> Completions:
        first = await self._session.fetch_value("first_event_at", after)
        rows = await self._session.fetch("completed_on", after, since)
        return Completions(first or 0, list(map(CompletedOn._make, rows)))

    async def between(
        self, kinds: Sequence[int], step: int, start: int, end: int
    ) -> list[SeriesRow]:
        rows = await self._session.fetch("series_between", list(kinds), step, start, end)
        return list(map(SeriesRow._make, rows))

    async def last(self, kind: int, step: int, before: int) -> SeriesRow | None:
        rows = await self._session.fetch("last_series", kind, step, before)
        return SeriesRow._make(rows[0]) if rows else None

    async def workers_by_status(self) -> Mapping[int, int]:
        return {row[0]: row[1] for row in await self._session.fetch("workers_by_status")}

    async def pool_workers_by_state(self) -> list[tuple[str, int, int]]:
        rows = await self._session.fetch("pool_workers_by_state")
        return [(row[0], row[1], row[2]) for row in rows]

    async def move_on(self, source: int, to: int) -> bool:
        return bool(await self._session.fetch("move_series_on", source, to))

    async def put(self, rows: Sequence[SeriesRow]) -> None:
        if rows:
            columns = (list(column) for column in zip(*rows, strict=True))
            await self._session.execute("put_series", *columns)

    async def trim(self, kind: int, step: int, before: int, count: int) -> int:
        return len(await self._session.fetch("trim_series", kind, step, before, count))
