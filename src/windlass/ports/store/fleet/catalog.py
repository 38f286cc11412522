"""The role of a transaction that keeps what engines cache."""

from collections.abc import Mapping
from typing import Final, Protocol

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow

BACKUP: Final = "is_backup"
"""The name in `meta` of a store that is a backup; it counts until a new epoch begins."""


class CatalogRead(Protocol):
    """Reads: what engines cache: shapes, queues, settings."""

    async def shapes_after(self, shape: int) -> list[ShapeRow]: ...

    async def queues(self) -> list[QueueRow]: ...

    async def meta(self) -> dict[str, int]: ...

    async def gaps(self) -> list[Gap]:
        """Returns where ids have jumped, the oldest first; there are few."""
        ...


class CatalogWrite(CatalogRead, Protocol):
    """What engines cache: shapes, queues, settings."""

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Maps digest → body to digest → id, adding shapes that are new."""
        ...

    async def put_queue(self, row: QueueRow) -> None: ...

    async def set_meta(self, name: str, value: int) -> None: ...

    async def advance_meta(self, name: str, source: int, to: int) -> bool:
        """Sets it from `source`, or for the first time; False if another server has changed it.

        True means that this transaction holds it until it ends.
        """
        ...

    async def follow_timeline(self) -> tuple[int, int] | None:
        """Notes the timeline of the database; returns the noted and the new one if it changed.

        Engines that ask at the same time come one after another. Only PostgreSQL has timelines.
        """
        ...

    async def jump_ids(self, now: int) -> Gap:
        """Lets all ids but those of events go on where nobody has been; the caller puts the gap."""
        ...

    async def put_gap(self, gap: Gap) -> None:
        """Adds a gap, or changes the one with this `first`."""
        ...
