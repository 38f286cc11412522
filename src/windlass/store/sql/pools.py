"""Rows of `pools`, `pool_workers` and `pool_costs`."""

from collections.abc import Sequence

from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.ports.store.fleet.pools import HeldJob, Load, Span, Spell, position_name
from windlass.store.sql.session import Role


class Pools(Role):
    """`PoolsWrite`."""

    __slots__ = ()

    async def insert(self, row: PoolRow) -> int:
        return await self._session.insert("insert_pool", row[1:])

    async def lock(self, pool: int) -> PoolRow | None:
        return await self._session.row(PoolRow, "lock_pool", pool)

    async def lock_name(self, name: str) -> PoolRow | None:
        return await self._session.row(PoolRow, "lock_pool_name", name)

    async def update(self, row: PoolRow) -> None:
        await self._session.execute("update_pool", row.id, *row[2:9], row.updated_at)

    async def remove(self, pool: int) -> None:
        await self._session.execute("remove_pool", pool)
        await self._session.execute("remove_pool_workers", pool)
        await self._session.execute("forget_position", position_name(pool))

    async def all(self) -> list[PoolRow]:
        return await self._session.rows(PoolRow, "pools_by_name")

    async def add_workers(self, rows: Sequence[PoolWorkerRow]) -> list[PoolWorkerRow]:
        return [
            row._replace(id=await self._session.insert("insert_pool_worker", row[1:]))
            for row in rows
        ]

    async def update_workers(self, rows: Sequence[PoolWorkerRow]) -> None:
        changed = [
            (row.id, row.state, row.worker, row.last_lease, row.changed_at, row.idle_since,
             row.charged_until, row.tries, row.machine, row.reason)
            for row in rows
        ]  # fmt: skip
        await self._session.many("update_pool_workers", "iiiiiiiioo", changed)

    async def worker(self, number: int) -> PoolWorkerRow | None:
        return await self._session.row(PoolWorkerRow, "pool_worker", number)

    async def living(self, pool: int | None = None) -> list[PoolWorkerRow]:
        return await self._session.rows(PoolWorkerRow, "living_pool_workers", pool)

    async def trim_gone(self, before: int, count: int) -> int:
        return await self._session.execute("trim_gone_pool_workers", before, count)

    async def charge(self, rows: Sequence[CostRow]) -> None:
        for row in sorted(rows):  # in the one order in which all lock
            await self._session.execute("charge_pool", *row)

    async def costs(self, month: int, pool: str | None = None) -> list[CostRow]:
        return await self._session.rows(CostRow, "pool_costs_of_month", month, pool)

    async def load(self, most: int) -> Load:
        ready = await self._session.fetch("ready_load", most)
        leased = await self._session.rows(HeldJob, "leased_load")
        return Load([(shape, count) for shape, count in ready], leased)

    async def spells(self, after: int, workers: Sequence[int]) -> list[Spell]:
        if not workers:
            return []
        return await self._session.rows(Spell, "ended_spells", after, self._session.ids(workers))

    async def span(self, shape: int, rank: int, job: int, most: int) -> Span:
        last = await self._session.fetch("nth_ready", shape, rank, job, most)
        if last:
            return Span(most, *last[0])
        return Span(await self._session.fetch_value("rest_of_ready", shape, rank, job), 0, 0)
