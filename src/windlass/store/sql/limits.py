"""Rows of `limits`: concurrency keys."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import LimitRow
from windlass.store.sql.session import Role


class Limits(Role):
    """`LimitsWrite`, but for new keys. Unknown limits are passed over."""

    __slots__ = ()

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._by_id("read_limits", ids)

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._by_id("lock_limits", ids)

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._by_id("lock_free_limits", ids)

    async def parked(self) -> list[int]:
        """Returns them ascending."""
        return [row[0] for row in await self._session.fetch("parked_limits")]

    async def bump(self, deltas: Mapping[int, int]) -> None:
        await self._session.many("bump_limits", "ii", sorted(deltas.items()))

    async def _by_id(self, query: str, ids: Sequence[int]) -> dict[int, LimitRow]:
        if not ids:
            return {}
        rows = await self._session.rows(LimitRow, query, self._session.ids(ids))
        return {row.id: row for row in rows}
