"""What limits a claim beside keys: loads of workers, rates, reservations, shares."""

from collections import Counter
from collections.abc import Mapping, Sequence

from windlass.domain.job.job import PREEMPTIBLE
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import RateRow, Reservation
from windlass.ports.store.fleet.placement import HeldIndices, Load, Preemptible, RateKey
from windlass.store.memory.tables import Tables

RUNNING = State.RUNNING.code


class MemoryPlacement:
    """`PlacementWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def loads(self, workers: Sequence[int]) -> list[Load]:
        held: Counter[tuple[int, int]] = Counter()
        for worker in set(workers):
            for lease in self._tables.leases.between((worker,), (worker + 1,)):
                held[worker, self._shape(lease.job)] += 1
        return [Load(*key, count) for key, count in sorted(held.items())]

    async def indices(self, workers: Sequence[int]) -> list[HeldIndices]:
        return sorted(
            HeldIndices(worker, lease.job, lease.indices)
            for worker in set(workers)
            for lease in self._tables.leases.between((worker,), (worker + 1,))
            if lease.indices is not None
        )

    async def running(self) -> dict[int, int]:
        return dict(sorted(Counter(self._shape(row.job) for row in self._tables.leases).items()))

    async def preemptible(self) -> list[Preemptible]:
        running = sorted(self._tables.leases, key=lambda row: -row.lease)
        return [
            Preemptible(row.job, row.worker, facts.shape, facts.rank, int(row.reason is not None))
            for row in running
            for facts in (self._tables.jobs[row.job].facts,)
            if row.state == RUNNING and facts.flags & PREEMPTIBLE
        ]

    async def unbound(self, shapes: Sequence[int]) -> list[int]:
        leases = self._tables.leases
        return sorted(
            row.job for row in leases if row.queue_limit is None and self._shape(row.job) in shapes
        )

    async def bind(self, jobs: Sequence[int], limit: int | None) -> None:
        for job in jobs:
            row = self._tables.leases.get(job)
            if row is not None:
                self._tables.leases.put(job, row._replace(queue_limit=limit))

    async def hold(self, rows: Sequence[tuple[int, str]]) -> None:
        for job, indices in rows:
            lease = self._tables.leases.get(job)
            if lease is not None:
                self._tables.leases.put(job, lease._replace(indices=indices))

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        del wait  # transactions run one after another
        rates = self._tables.rates
        for key in sorted(keys):
            if key not in rates:
                rates.insert(key, RateRow(*key, 0, "[]"))
        return {key: rates[key] for key in sorted(keys)}

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        for row in rows:
            self._tables.rates.put((row.namespace, row.key), row)

    async def reservations(self) -> list[Reservation]:
        return sorted(self._tables.reservations)

    async def reserve(self, row: Reservation) -> bool:
        held = self._tables.reservations
        if row.worker in held or any(other.job == row.job for other in held):
            return False
        held.insert(row.worker, row)
        return True

    async def release(self, workers: Sequence[int]) -> None:
        for worker in workers:
            self._tables.reservations.pop(worker)

    async def namespace_weights(self) -> Mapping[str, int]:
        return dict(sorted(self._tables.namespace_weights))

    async def set_namespace_weight(self, namespace: str, weight: int) -> None:
        self._tables.namespace_weights.put(namespace, (namespace, weight))

    def _shape(self, job: int) -> int:
        return self._tables.jobs[job].facts.shape
