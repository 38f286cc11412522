"""What engines cache: shapes, queues, settings."""

from collections.abc import Mapping

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.domain.values.ids import ShapeId
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

    async def advance_meta(self, name: str, source: int, to: int) -> bool:
        known = self._tables.meta.get(name)
        if known is not None and known[1] != source:
            return False
        self._tables.meta.put(name, (name, to))
        return True

    async def gaps(self) -> list[Gap]:
        return self._tables.gaps.between((), None)

    async def follow_timeline(self) -> None:
        """Knows of no timelines."""

    async def jump_ids(self, now: int) -> Gap:
        tables = self._tables
        last_job = max((row.facts.id for row in tables.jobs), default=0)
        last_workflow = max((row.id for row in tables.workflows), default=0)
        last_event = max((event.seq for event in tables.events), default=0)
        return Gap(tables.jump(now), now, last_job, last_workflow, last_event)

    async def put_gap(self, gap: Gap) -> None:
        self._tables.gaps.put(gap.first, gap)

    def _intern(self, digest: str, body: bytes) -> int:
        shape = self._tables.shape_ids.get(digest)
        if shape is None:
            (shape,) = self._tables.number("shape")
            self._tables.shape_ids.insert(digest, shape)
            self._tables.shapes.insert(shape, ShapeRow(ShapeId(shape), digest, body))
        return shape
