"""What engines cache: shapes, queues, settings."""

from collections.abc import Mapping

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.store.sql.session import Role


class Catalog(Role):
    """`CatalogWrite`, but for timelines and jumps of ids."""

    __slots__ = ()

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Numbers new shapes in the order of the mapping."""
        if not shapes:
            return {}
        known = await self._find(shapes)
        missing = [(digest, body) for digest, body in shapes.items() if digest not in known]
        if missing:
            await self._session.number_many("shape", "insert_shapes", "oo", missing)
            known = await self._find(shapes)
        return {digest: known[digest] for digest in shapes}

    async def shapes_after(self, shape: int) -> list[ShapeRow]:
        """Returns them ascending by id."""
        return await self._session.rows(ShapeRow, "shapes_after", shape)

    async def queues(self) -> list[QueueRow]:
        """Returns them ascending by name."""
        return await self._session.rows(QueueRow, "queues")

    async def put_queue(self, row: QueueRow) -> None:
        await self._session.execute("put_queue", *row)

    async def meta(self) -> dict[str, int]:
        return dict(await self._session.fetch("meta"))

    async def set_meta(self, name: str, value: int) -> None:
        await self._session.execute("set_meta", name, value)

    async def advance_meta(self, name: str, source: int, to: int) -> bool:
        return bool(await self._session.fetch("advance_meta", name, source, to))

    async def gaps(self) -> list[Gap]:
        return await self._session.rows(Gap, "gaps")

    async def put_gap(self, gap: Gap) -> None:
        await self._session.execute("put_gap", *gap)

    async def _find(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        return dict(await self._session.fetch("find_shapes", self._session.texts(shapes)))
