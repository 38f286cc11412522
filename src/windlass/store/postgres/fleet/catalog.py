"""What engines cache: shapes, queues, settings."""

from collections.abc import Mapping

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.store.postgres.session import Session


class PostgresCatalog:
    """`CatalogWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Numbers new shapes in the order of the mapping."""
        if not shapes:
            return {}
        known = await self._find(shapes)
        missing = [digest for digest in shapes if digest not in known]
        if missing:
            bodies = [shapes[digest] for digest in missing]
            await self._session.execute("insert_shapes", missing, bodies)
            known = await self._find(shapes)
        return {digest: known[digest] for digest in shapes}

    async def shapes_after(self, shape: int) -> list[ShapeRow]:
        return list(map(ShapeRow._make, await self._session.fetch("shapes_after", shape)))

    async def queues(self) -> list[QueueRow]:
        return list(map(QueueRow._make, await self._session.fetch("queues")))

    async def put_queue(self, row: QueueRow) -> None:
        await self._session.execute("put_queue", *row)

    async def meta(self) -> dict[str, int]:
        return dict(map(tuple, await self._session.fetch("meta")))

    async def set_meta(self, name: str, value: int) -> None:
        await self._session.execute("set_meta", name, value)

    async def advance_meta(self, name: str, source: int, to: int) -> bool:
        return bool(await self._session.fetch("advance_meta", name, source, to))

    async def gaps(self) -> list[Gap]:
        return list(map(Gap._make, await self._session.fetch("gaps")))

    async def follow_timeline(self) -> tuple[int, int] | None:
        await self._session.execute("lock_timeline")
        noted, present = (await self._session.fetch("timelines"))[0]
        if noted == present:
            return None
        await self._session.execute("note_timeline", present)
        return None if noted is None else (noted, present)

    async def jump_ids(self, now: int) -> Gap:
        first, *newest = (await self._session.fetch("jump_ids", now))[0]
        return Gap(first, now, *newest)

    async def put_gap(self, gap: Gap) -> None:
        await self._session.execute("put_gap", *gap)

    async def _find(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        return dict(map(tuple, await self._session.fetch("find_shapes", list(shapes))))
