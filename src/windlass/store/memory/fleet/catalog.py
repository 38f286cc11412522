"""What engines cache: shapes, queues, settings."""

from collections.abc import Mapping

from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.store.memory.tables import Tables


class MemoryCatalog:
    """`CatalogWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Numbers new shapes in the order of the mapping."""
        return {digest: self._intern(digest, body) for digest, body in shapes.items()}

    async def shapes_after(self, shape: int) -> list[ShapeRow]:
        """Returns them ascending by id."""
        return self._tables.shapes.between((shape + 1,), None)

    async def queues(self) -> list[QueueRow]:
        """Returns them ascending by name."""
        return sorted(self._tables.queues)

    async def put_queue(self, row: QueueRow) -> None:
        self._tables.queues.put(row.name, row)

    async def meta(self) -> dict[str, int]:
        return dict(sorted(self._tables.meta))

    async def set_meta(self, name: str, value: int) -> None:
        self._tables.meta.put(name, (name, value))

    async def advance_meta(self, name: str, frm: int, to: int) -> bool:
        known = self._tables.meta.get(name)
        if known is not None and known[1] != frm:
            return False
        self._tables.meta.put(name, (name, to))
        return True

    def _intern(self, digest: str, body: bytes) -> int:
        shape = self._tables.shape_ids.get(digest)
        if shape is None:
            (shape,) = self._tables.number("shape")
            self._tables.shape_ids.insert(digest, shape)
            self._tables.shapes.insert(shape, ShapeRow(shape, digest, body))
        return shape
