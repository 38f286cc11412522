"""Rows of `pools`, `pool_workers` and `pool_costs`."""

from collections.abc import Sequence

import apsw

from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.ports.store.fleet.pools import HeldJob, Load, Span, Spell, position_name
from windlass.store.sqlite.rows import as_cost, as_pool, as_pool_worker, integers
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


class SqlitePools:
    """`PoolsWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._sequences = sequences

    async def insert(self, row: PoolRow) -> int:
        if await self.lock_name(row.name) is not None:
            return 0
        (pool,) = self._sequences.take("pool")
        self._execute(QUERIES["insert_pool"], (pool, *row[1:]))
        return pool

    async def lock(self, pool: int) -> PoolRow | None:
        rows = self._execute(QUERIES["pool"], (pool,)).fetchall()
        return as_pool(rows[0]) if rows else None

    async def lock_name(self, name: str) -> PoolRow | None:
        rows = self._execute(QUERIES["pool_by_name"], (name,)).fetchall()
        return as_pool(rows[0]) if rows else None

    async def update(self, row: PoolRow) -> None:
        self._execute(QUERIES["update_pool"], (row.id, *row[2:9], row.updated_at))

    async def remove(self, pool: int) -> None:
        self._execute(QUERIES["remove_pool"], (pool,))
        self._execute(QUERIES["remove_pool_workers"], (pool,))
        self._execute(QUERIES["forget_position"], (position_name(pool),))

    async def all(self) -> list[PoolRow]:
        return list(map(as_pool, self._execute(QUERIES["pools_by_name"])))

    async def add_workers(self, rows: Sequence[PoolWorkerRow]) -> list[PoolWorkerRow]:
        added: list[PoolWorkerRow] = []
        for row in rows:
            (number,) = self._sequences.take("pool_worker")
            added.append(row._replace(id=number))
            self._execute(QUERIES["insert_pool_worker"], added[-1])
        return added

    async def update_workers(self, rows: Sequence[PoolWorkerRow]) -> None:
        self._connection.executemany(
            QUERIES["update_pool_worker"],
            [
                (r.id, r.state, r.worker, r.last_lease, r.changed_at, r.idle_since,
                 r.charged_until, r.tries, r.machine, r.reason)
                for r in rows
            ],
        )  # fmt: skip

    async def worker(self, number: int) -> PoolWorkerRow | None:
        rows = self._execute(QUERIES["pool_worker"], (number,)).fetchall()
        return as_pool_worker(rows[0]) if rows else None

    async def living(self, pool: int | None = None) -> list[PoolWorkerRow]:
        return list(map(as_pool_worker, self._execute(QUERIES["living_pool_workers"], (pool,))))

    async def trim_gone(self, before: int, count: int) -> int:
        self._execute(QUERIES["trim_gone_pool_workers"], (before, count))
        return self._connection.changes()

    async def charge(self, rows: Sequence[CostRow]) -> None:
        for row in rows:
            self._execute(QUERIES["charge_pool"], row)

    async def costs(self, month: int, pool: str | None = None) -> list[CostRow]:
        return list(map(as_cost, self._execute(QUERIES["pool_costs_of_month"], (month, pool))))

    async def load(self, most: int) -> Load:
        ready = [(shape, count) for shape, count in self._execute(QUERIES["ready_load"], (most,))]
        leased = self._execute(QUERIES["leased_load"])
        return Load(ready, list(map(HeldJob._make, leased)))

    async def spells(self, after: int, workers: Sequence[int]) -> list[Spell]:
        if not workers:
            return []
        rows = self._execute(QUERIES["ended_spells"], (after, integers(sorted(workers))))
        return list(map(Spell._make, rows))

    async def span(self, shape: int, rank: int, job: int, most: int) -> Span:
        last = self._execute(QUERIES["nth_ready"], (shape, rank, job, most)).fetchall()
        if last:
            return Span._make((most, *last[0]))
        return Span(self._execute(QUERIES["rest_of_ready"], (shape, rank, job)).get, 0, 0)
