"""What engines cache: shapes, queues, settings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.store.sql.session import Role, query

BACKUP: Final = "is_backup"
"""The name in `meta` of a store that is a backup; it counts until a new epoch begins."""


class Catalog(Role, ABC):
    """What engines cache: shapes, queues, settings."""

    __slots__ = ()

    shapes_after = query("shapes_after", int).rows(ShapeRow)
    """Returns the shapes above an id, ascending."""

    queues = query("queues").rows(QueueRow)
    """Returns them ascending by name."""

    meta = query("meta").pairs(str, int)

    gaps = query("gaps").rows(Gap)
    """Returns where ids have jumped, the oldest first; there are few."""

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

    put_queue = query("put_queue").record(QueueRow)
    set_meta = query("set_meta", str, int).run()

    advance_meta = query("advance_meta", str, int, int).found()
    """Sets a name from one value, or from none, to another; returns False if another server has
    changed it.

    True means that this transaction holds it until commit.
    """

    put_gap = query("put_gap").record(Gap)
    """Adds a gap, or changes the one with this `first`."""

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
