"""Rows of `pools`, `pool_workers` and `pool_costs`."""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import ACTIVE
from windlass.domain.pools.pools import CostRow, Lifecycle, PoolRow, PoolWorkerRow
from windlass.domain.rows.events import EventKind
from windlass.ports.store.fleet.pools import HeldJob, Load, Span, Spell, position_name
from windlass.store.memory.tables import Tables

HELD = frozenset(state.code for state in ACTIVE)


class MemoryPools:
    """`PoolsWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._pools = tables.pools
        self._workers = tables.pool_workers
        self._costs = tables.pool_costs

    async def insert(self, row: PoolRow) -> int:
        if await self.lock_name(row.name) is not None:
            return 0
        (pool,) = self._tables.number("pool")
        self._pools.insert(pool, row._replace(id=pool))
        return pool

    async def lock(self, pool: int) -> PoolRow | None:
        return self._pools.get(pool)

    async def lock_name(self, name: str) -> PoolRow | None:
        return next((row for row in self._pools if row.name == name), None)

    async def update(self, row: PoolRow) -> None:
        old = self._pools.get(row.id)
        if old is not None:
            kept = row._replace(name=old.name, created_at=old.created_at, created_by=old.created_by)
            self._pools.put(row.id, kept)

    async def remove(self, pool: int) -> None:
        self._pools.pop(pool)
        self._tables.meta.pop(position_name(pool))
        for row in self._workers.between((), None):
            if row.pool == pool:
                self._workers.pop(row.id)

    async def all(self) -> list[PoolRow]:
        return sorted(self._pools, key=lambda row: row.name)

    async def add_workers(self, rows: Sequence[PoolWorkerRow]) -> list[PoolWorkerRow]:
        numbers = self._tables.number("pool_worker", len(rows)) if rows else ()
        added = [row._replace(id=n) for row, n in zip(rows, numbers, strict=True)]
        for row in added:
            self._workers.insert(row.id, row)
        return added

    async def update_workers(self, rows: Sequence[PoolWorkerRow]) -> None:
        for row in rows:
            old = self._workers.get(row.id)
            if old is not None:
                kept = row._replace(
                    pool=old.pool, requested_at=old.requested_at, spot=old.spot, token=old.token
                )
                self._workers.put(row.id, kept)

    async def worker(self, number: int) -> PoolWorkerRow | None:
        return self._workers.get(number)

    async def living(self, pool: int | None = None) -> list[PoolWorkerRow]:
        rows = self._workers.between((), None)
        return [r for r in rows if r.state != Lifecycle.GONE and pool in (None, r.pool)]

    async def trim_gone(self, before: int, count: int) -> int:
        rows = (row for row in self._workers if row.state == Lifecycle.GONE)
        old = sorted((r for r in rows if r.changed_at < before), key=lambda r: (r.changed_at, r.id))
        for row in old[:count]:
            self._workers.pop(row.id)
        return min(len(old), count)

    async def charge(self, rows: Sequence[CostRow]) -> None:
        for row in rows:
            key = row[:4]
            old = self._costs.get(key) or row._replace(ms=0, micros=0)
            self._costs.put(key, old._replace(ms=old.ms + row.ms, micros=old.micros + row.micros))

    async def costs(self, month: int, pool: str | None = None) -> list[CostRow]:
        return sorted(r for r in self._costs if r.month == month and pool in (None, r.pool))

    async def load(self, most: int) -> Load:
        counts: dict[int, int] = {}
        for ticket in self._tables.ready:
            counts[ticket.shape] = min(counts.get(ticket.shape, 0) + 1, most)
        leases = sorted(
            HeldJob(lease.worker, job.facts.shape, lease.started_at or lease.assigned_at, lease.job)
            for lease in self._tables.leases
            if (job := self._tables.jobs.get(lease.job)) is not None
        )
        return Load(sorted(counts.items()), leases)

    async def spells(self, after: int, workers: Sequence[int]) -> list[Spell]:
        found: list[Spell] = []
        for event in self._tables.events.between((after + 1,), None):
            ended = event.kind == EventKind.JOB and event.source in HELD and event.to not in HELD
            job = self._tables.jobs.get(event.job)
            if not ended or event.worker not in workers or job is None:
                continue
            attempt = self._tables.attempts.get((event.job, event.attempt))
            if attempt is None and not job.facts.is_open and job.facts.attempt == event.attempt:
                since = job.started_at or job.assigned_at
            elif attempt is not None:
                since = attempt.started_at or attempt.assigned_at
            else:
                continue
            if since is not None:
                found.append(Spell(event.worker, job.facts.shape, since, event.at))
        return sorted(found)

    async def span(self, shape: int, rank: int, job: int, most: int) -> Span:
        found = self._tables.ready.between((shape, rank, job + 1), (shape + 1,), most)
        if len(found) == most:
            return Span(most, found[-1].rank, found[-1].job)
        return Span(len(found), 0, 0)
