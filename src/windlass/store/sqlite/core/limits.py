"""Rows of `limits`: concurrency keys."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.rows.records import LimitRow
from windlass.store.sqlite.rows import Row, as_limit, integers
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


class SqliteLimits:
    """`LimitsWrite` over one connection. Unknown limits are passed over."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._sequences = sequences

    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Numbers new keys in the order of `rows`."""
        return {
            (namespace, key): self._intern(namespace, key, most) for namespace, key, most in rows
        }

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        if not ids:
            return {}
        rows = self._execute(QUERIES["limits"], (integers(sorted(ids)),))
        return {row[0]: as_limit(row) for row in rows}

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(ids)

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self.lock(ids)

    async def parked(self) -> list[int]:
        """Returns them ascending."""
        rows: list[Row] = self._execute(QUERIES["parked_limits"]).fetchall()
        return [limit for (limit,) in rows]

    async def bump(self, deltas: Mapping[int, int]) -> None:
        self._executemany(QUERIES["bump_limits"], list(deltas.items()))

    def _intern(self, namespace: str, key: str, most: int) -> int:
        found: list[Row] = self._execute(QUERIES["limit_id"], (namespace, key)).fetchall()
        if found:
            limit: int = found[0][0]
            self._execute(QUERIES["set_limit"], (limit, most))
        else:
            (limit,) = self._sequences.take("limit")
            self._execute(QUERIES["insert_limit"], (limit, namespace, key, most))
        return limit
