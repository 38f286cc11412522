"""What engines cache: shapes, queues, settings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.store.sql.session import Role

BACKUP: Final = "is_backup"
"""The name in `meta` of a store that is a backup; it counts until a new epoch begins."""


class CatalogRead(Role):
    """Reads what engines cache: shapes, queues, settings."""

    __slots__ = ()

    async def shapes_after(self, shape: int) -> list[ShapeRow]:
        """Returns them ascending by id."""
        return await self._session.rows(ShapeRow, "shapes_after", shape)

    async def queues(self) -> list[QueueRow]:
        """Returns them ascending by name."""
        return await self._session.rows(QueueRow, "queues")

    async def meta(self) -> dict[str, int]:
        return dict(await self._session.fetch("meta"))

    async def gaps(self) -> list[Gap]:
        """Returns where ids have jumped, the oldest first; there are few."""
        return await self._session.rows(Gap, "gaps")


class Catalog(CatalogRead, ABC):
    """What engines cache: shapes, queues, settings."""

    __slots__ = ()

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Maps digest → body to digest → id, adding shapes that are new.

        New shapes are numbered in the order of the mapping.
        """
        if not shapes:
            return {}
        known = await self._find(shapes)
        missing = [(digest, body) for digest, body in shapes.items() if digest not in known]
        if missing:
            await self._session.number_many("shape", "insert_shapes", "oo", missing)
            known = await self._find(shapes)
        return {digest: known[digest] for digest in shapes}

    async def _find(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        return dict(await self._session.fetch("find_shapes", self._session.texts(shapes)))

    async def put_queue(self, row: QueueRow) -> None:
        await self._session.execute("put_queue", *row)

    async def set_meta(self, name: str, value: int) -> None:
        await self._session.execute("set_meta", name, value)

    async def advance_meta(self, name: str, source: int, to: int) -> bool:
        """Sets it if it is `source` or not set; returns False if another server has changed it.

        True means that this transaction holds it until commit.
        """
        return bool(await self._session.fetch("advance_meta", name, source, to))

    async def put_gap(self, gap: Gap) -> None:
        """Adds a gap, or changes the one with this `first`."""
        await self._session.execute("put_gap", *gap)

    @abstractmethod
    async def follow_timeline(self) -> tuple[int, int] | None:
        """Records the timeline of the database; returns the old and the new one if it changed.

        Concurrent callers take turns. Only PostgreSQL has timelines.
        """

    @abstractmethod
    async def jump_ids(self, now: int) -> Gap:
        """Lets all ids except those of events continue above any number used before; the caller
        records the gap.
        """
