"""Rows of `pools`, `pool_workers` and `pool_costs`."""

from collections.abc import Sequence

from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.ports.store.fleet.pools import HeldJob, Load, Span, Spell, position_name
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Session


class PostgresPools:
    """`PoolsWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def insert(self, row: PoolRow) -> int:
        rows = await self._session.fetch("insert_pool", *row[1:])
        return int(rows[0][0]) if rows else 0

    async def lock(self, pool: int) -> PoolRow | None:
        rows = await self._session.fetch("lock_pool", pool)
        return PoolRow._make(rows[0]) if rows else None

    async def lock_name(self, name: str) -> PoolRow | None:
        rows = await self._session.fetch("lock_pool_name", name)
        return PoolRow._make(rows[0]) if rows else None

    async def update(self, row: PoolRow) -> None:
        await self._session.execute("update_pool", row.id, *row[2:9], row.updated_at)

    async def remove(self, pool: int) -> None:
        await self._session.execute("remove_pool", pool)
        await self._session.execute("forget_position", position_name(pool))

    async def all(self) -> list[PoolRow]:
        return list(map(PoolRow._make, await self._session.fetch("pools_by_name")))

    async def add_workers(self, rows: Sequence[PoolWorkerRow]) -> list[PoolWorkerRow]:
        added: list[PoolWorkerRow] = []
        for row in rows:
            number = await self._session.fetch_value("insert_pool_worker", *row[1:])
            added.append(row._replace(id=number))
        return added

    async def update_workers(self, rows: Sequence[PoolWorkerRow]) -> None:
        if not rows:
            return
        numbers = ("id", "state", "worker", "last_lease", "changed_at", "idle_since",
                   "charged_until", "tries")  # fmt: skip
        columns: list[object] = [integers([getattr(r, name) for r in rows]) for name in numbers]
        columns += [[r.machine for r in rows], [r.reason for r in rows]]
        await self._session.execute("update_pool_workers", *columns)

    async def worker(self, number: int) -> PoolWorkerRow | None:
        rows = await self._session.fetch("pool_worker", number)
        return PoolWorkerRow._make(rows[0]) if rows else None

    async def living(self, pool: int | None = None) -> list[PoolWorkerRow]:
        rows = await self._session.fetch("living_pool_workers", pool)
        return list(map(PoolWorkerRow._make, rows))

    async def trim_gone(self, before: int, count: int) -> int:
        status = await self._session.execute("trim_gone_pool_workers", before, count)
        return int(status.rpartition(" ")[2])

    async def charge(self, rows: Sequence[CostRow]) -> None:
        for row in sorted(rows):
            await self._session.execute("charge_pool", *row)

    async def costs(self, month: int, pool: str | None = None) -> list[CostRow]:
        rows = await self._session.fetch("pool_costs_of_month", month, pool)
        return list(map(CostRow._make, rows))

    async def load(self, most: int) -> Load:
        ready = [(shape, n) for shape, n in await self._session.fetch("ready_load", most)]
        leased = await self._session.fetch("leased_load")
        return Load(ready, list(map(HeldJob._make, leased)))

    async def spells(self, after: int, workers: Sequence[int]) -> list[Spell]:
        if not workers:
            return []
        rows = await self._session.fetch("ended_spells", after, ascending(workers))
        return list(map(Spell._make, rows))

    async def span(self, shape: int, rank: int, job: int, most: int) -> Span:
        last = await self._session.fetch("nth_ready", shape, rank, job, most)
        if last:
            return Span(most, *last[0])
        return Span(await self._session.fetch_value("rest_of_ready", shape, rank, job), 0, 0)
