"""The role of a transaction that keeps what engines cache."""

from collections.abc import Mapping
from typing import Final, Protocol

from windlass.domain.rows.records import QueueRow, ShapeRow

BACKUP: Final = "is_backup"
"""The name in `meta` of a store that is a backup; it counts until a new epoch begins."""


class CatalogRead(Protocol):
    """Reads: what engines cache: shapes, queues, settings."""

    async def shapes_after(self, shape: int) -> list[ShapeRow]: ...

    async def queues(self) -> list[QueueRow]: ...

    async def meta(self) -> dict[str, int]: ...


class CatalogWrite(CatalogRead, Protocol):
    """What engines cache: shapes, queues, settings."""

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Maps digest → body to digest → id, adding shapes that are new."""
        ...

    async def put_queue(self, row: QueueRow) -> None: ...

    async def set_meta(self, name: str, value: int) -> None: ...

    async def advance_meta(self, name: str, frm: int, to: int) -> bool:
        """Sets it from `frm`, or for the first time; False if another server has changed it.

        True means that this transaction holds it until it ends.
        """
        ...
