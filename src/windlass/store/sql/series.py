"""Rows of `series`."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.series import Move, SeriesRow
from windlass.ports.store.records.series import CompletedOn, Completions, Moved
from windlass.store.sql.session import Role


class Series(Role):
    """`SeriesWrite`."""

    __slots__ = ()

    async def position(self) -> int:
        return await self._session.fetch_value("series_position") or 0

    async def moves(self, after: int, before: int, count: int) -> Moved:
        upto = await self._session.fetch_value("look_until", after, before, count)
        return Moved(upto, await self._session.rows(Move, "moves_between", after, upto))

    async def moved(
        self, after: int, upto: int, most: int
    ) -> list[tuple[int, int, int, int]] | None:
        if upto - after > most:
            return None
        rows = await self._session.fetch("moved_between", after, upto)
        return [(shape, source, to, count) for shape, source, to, count in rows]

    async def held_since(self, after: int, upto: int, most: int) -> dict[int, int] | None:
        if upto - after > most:
            return None
        return dict(await self._session.fetch("held_since", after, upto))

    async def completed_on(self, after: int, since: int) -> Completions:
        first = await self._session.fetch_value("first_event_at", after)
        rows = await self._session.rows(CompletedOn, "completed_on", after, since)
        return Completions(first or 0, rows)

    async def between(
        self, kinds: Sequence[int], step: int, start: int, end: int
    ) -> list[SeriesRow]:
        wanted = self._session.integers(kinds)
        return await self._session.rows(SeriesRow, "series_between", wanted, step, start, end)

    async def last(self, kind: int, step: int, before: int) -> SeriesRow | None:
        return await self._session.row(SeriesRow, "last_series", kind, step, before)

    async def workers_by_status(self) -> Mapping[int, int]:
        return dict(await self._session.fetch("workers_by_status"))

    async def pool_workers_by_state(self) -> list[tuple[str, int, int]]:
        rows = await self._session.fetch("pool_workers_by_state")
        return [(name, state, count) for name, state, count in rows]

    async def move_on(self, source: int, to: int) -> bool:
        return bool(await self._session.fetch("move_series_on", source, to))

    async def put(self, rows: Sequence[SeriesRow]) -> None:
        await self._session.many("put_series", "iiiooo", rows)

    async def trim(self, kind: int, step: int, before: int, count: int) -> int:
        return len(await self._session.fetch("trim_series", kind, step, before, count))
