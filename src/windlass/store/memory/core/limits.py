"""Rows of `limits`: concurrency keys."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import LimitRow
from windlass.store.memory.tables import Tables


class MemoryLimits:
    """`LimitsWrite` over the tables. Unknown limits are passed over."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._limits = tables.limits

    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Numbers new keys in the order of `rows`."""
        return {
            (namespace, key): self._intern(namespace, key, most) for namespace, key, most in rows
        }

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return {limit: self._limits[limit] for limit in sorted(ids) if limit in self._limits}

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(ids)

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self.lock(ids)

    async def parked(self) -> list[int]:
        """Returns them ascending."""
        return [limit for (limit,) in self._tables.parked.prefixes(1)]

    async def bump(self, deltas: Mapping[int, int]) -> None:
        for limit, delta in deltas.items():
            row = self._limits.get(limit)
            if row is not None:
                self._limits.put(limit, row._replace(leased=row.leased + delta))

    def _intern(self, namespace: str, key: str, most: int) -> int:
        limit = self._tables.limit_ids.get((namespace, key))
        if limit is None:
            (limit,) = self._tables.number("limit")
            self._tables.limit_ids.insert((namespace, key), limit)
            self._limits.insert(limit, LimitRow(limit, namespace, key, most, 0))
        else:
            self._limits.put(limit, self._limits[limit]._replace(max=most))
        return limit
