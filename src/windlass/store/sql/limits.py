"""Rows of `limits`: concurrency keys."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import (
    LimitRow,
)
from windlass.store.sql.session import Role


class LimitsRead(Role):
    """Reads rows of `limits`: concurrency keys."""

    __slots__ = ()

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Returns these limits, not locked; unknown ids are absent."""
        return await self._by_id("read_limits", ids)

    async def parked(self) -> list[int]:
        """Returns the limits under which jobs are parked, ascending."""
        return [row[0] for row in await self._session.fetch("parked_limits")]

    async def _by_id(self, query: str, ids: Sequence[int]) -> dict[int, LimitRow]:
        if not ids:
            return {}
        rows = await self._session.rows(LimitRow, query, self._session.ids(ids))
        return {row.id: row for row in rows}


class Limits(LimitsRead, ABC):
    """Reads and writes rows of `limits`: concurrency keys. Unknown limits are passed over."""

    __slots__ = ()

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._by_id("lock_limits", ids)

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Returns the same without waiting: limits another transaction holds are absent."""
        return await self._by_id("lock_free_limits", ids)

    async def bump(self, deltas: Mapping[int, int]) -> None:
        """Adds to `leased` of these limits, which the caller has locked."""
        await self._session.many("bump_limits", "ii", sorted(deltas.items()))

    @abstractmethod
    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Returns ids of limits given as (namespace, key, max); existing ones get the new `max`."""
