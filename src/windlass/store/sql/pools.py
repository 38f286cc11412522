"""Rows of `pools`, `pool_workers` and `pool_costs`.

Where a store has locks, a pool is locked before everything else: nobody who holds another row asks
for one. Rows of its workers change only under the lock of the pool.
"""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.store.sql.session import Role, query


def position_name(pool: int) -> str:
    """Returns the name in `meta` under which a pool's last accounted event is kept."""
    return f"pool_{pool}_seq"


class HeldJob(NamedTuple):
    """A job that a worker holds, since it started or, before that, since it was assigned."""

    worker: int
    shape: int
    since: int
    job: int


class Load(NamedTuple):
    """The present work: ready jobs by shape, and the jobs that workers hold."""

    ready: list[tuple[int, int]]
    leases: list[HeldJob]

    @property
    def shapes(self) -> set[int]:
        return {shape for shape, _ in self.ready} | {held.shape for held in self.leases}


class Spell(NamedTuple):
    """A time in which a worker held a job of this shape: from its start, or its assignment, to its
    end.
    """

    worker: int
    shape: int
    since: int
    until: int


class Span(NamedTuple):
    """A number of consecutive ready jobs of a shape, and the position of the last one."""

    jobs: int
    rank: int
    job: int


class Pools(Role):
    """Reads and writes rows of `pools`, `pool_workers` and `pool_costs`."""

    __slots__ = ()

    all = query("pools_by_name").rows(PoolRow)
    """Returns every pool by name, not locked."""

    worker = query("pool_worker", int).row(PoolWorkerRow)
    """Returns a worker by its id, not locked."""

    async def living(self, pool: int | None = None) -> list[PoolWorkerRow]:
        """Returns the workers of one pool, or of all, that are not gone; ascending by id, not
        locked.
        """
        return await self._session.rows(PoolWorkerRow, "living_pool_workers", pool)

    async def costs(self, month: int, pool: str | None = None) -> list[CostRow]:
        """Returns the costs of a month so far, of one pool or all, by namespace and queue."""
        return await self._session.rows(CostRow, "pool_costs_of_month", month, pool)

    async def load(self, most: int) -> Load:
        """Returns both in ascending order; counts at most `most` ready jobs of a shape."""
        ready = await self._session.fetch("ready_load", most)
        leased = await self._session.rows(HeldJob, "leased_load")
        return Load([(shape, count) for shape, count in ready], leased)

    async def spells(self, after: int, workers: Sequence[int]) -> list[Spell]:
        """Returns how long attempts on these workers took that ended after event number `after`.

        They ascend; attempts of jobs that were removed since are left out.
        """
        if not workers:
            return []
        return await self._session.rows(Spell, "ended_spells", after, self._session.ids(workers))

    async def span(self, shape: int, rank: int, job: int, most: int) -> Span:
        """Returns up to `most` ready jobs of a shape that follow this position.

        The position of the last one is given only if there are that many.
        """
        last = await self._session.fetch("nth_ready", shape, rank, job, most)
        if last:
            return Span(most, *last[0])
        return Span(await self._session.fetch_value("rest_of_ready", shape, rank, job), 0, 0)

    insert = query("insert_pool").insert(PoolRow)
    """Inserts with a fresh id (the row's own `id` is ignored); 0 if the name is taken."""

    lock = query("lock_pool", int).row(PoolRow)
    lock_name = query("lock_pool_name", str).row(PoolRow)

    async def update(self, row: PoolRow) -> None:
        """Writes every column but id, name, created_at and created_by."""
        await self._session.execute("update_pool", row.id, *row[2:9], row.updated_at)

    async def remove(self, pool: int) -> None:
        """Removes a pool, the rows of its workers, and its position in the log.

        Its costs stay.
        """
        await self._session.execute("remove_pool", pool)
        await self._session.execute("remove_pool_workers", pool)
        await self._session.execute("forget_position", position_name(pool))

    async def add_workers(self, rows: Sequence[PoolWorkerRow]) -> list[PoolWorkerRow]:
        """Adds workers (their `id` is ignored); returns the rows with their ids."""
        return [
            row._replace(id=await self._session.insert("insert_pool_worker", row[1:]))
            for row in rows
        ]

    async def update_workers(self, rows: Sequence[PoolWorkerRow]) -> None:
        """Writes every column but id, pool, requested_at, spot and token."""
        changed = [
            (row.id, row.state, row.worker, row.last_lease, row.changed_at, row.idle_since,
             row.charged_until, row.tries, row.machine, row.reason)
            for row in rows
        ]  # fmt: skip
        await self._session.many("update_pool_workers", "iiiiiiiioo", changed)

    trim_gone = query("trim_gone_pool_workers", int, int).count()
    """Removes workers that were gone before a time, up to a number; returns how many."""

    async def charge(self, rows: Sequence[CostRow]) -> None:
        """Adds `ms` and `micros` to the row of each pool, month, namespace and queue."""
        for row in sorted(rows):  # in the order in which everybody locks
            await self._session.execute("charge_pool", *row)
