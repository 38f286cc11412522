"""Rows of `workers`."""

from collections.abc import Sequence

from windlass.domain.matching.workers import KEPT_METADATA, KEPT_NAMES, PastMetadata
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import WorkerId
from windlass.store.memory.tables import Tables


class MemoryWorkers:
    """`WorkersWrite` over the tables. Unknown workers are passed over; lists ascend by id."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._workers = tables.workers

    async def read(self, ids: Sequence[int]) -> dict[int, Worker]:
        return await self.lock(ids)

    async def read_name(self, name: str) -> Worker | None:
        return await self.lock_name(name)

    async def lock(self, ids: Sequence[int]) -> dict[int, Worker]:
        return {worker: self._workers[worker] for worker in sorted(ids) if worker in self._workers}

    async def lock_name(self, name: str) -> Worker | None:
        return next((row for row in self._workers if row.name == name), None)

    async def insert(self, row: Worker) -> int:
        if await self.lock_name(row.name) is not None:
            return 0
        (worker,) = self._tables.number("worker")
        self._workers.insert(worker, row._replace(id=WorkerId(worker)))
        return worker

    async def update(self, rows: Sequence[Worker]) -> None:
        for row in rows:
            if row.id in self._workers:
                self._workers.put(row.id, row)

    async def beat(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        for worker, seq, last_seen, last_lease in rows:
            row = self._workers.get(worker)
            if row is not None:
                beat = row._replace(seq=seq, last_seen=last_seen, last_lease=last_lease)
                self._workers.put(worker, beat)

    async def remove(self, worker: int) -> None:
        gone = self._workers.pop(worker)
        if gone is not None:
            self._tables.past_workers.put(worker, (worker, gone.name))
        for old in [past for past in self._tables.past_workers if past[0] < worker - KEPT_NAMES]:
            self._tables.past_workers.pop(old[0])
        for past in [row for row in self._tables.past_metadata if row.worker == worker]:
            self._tables.past_metadata.pop((worker, past.digest))

    async def all(self) -> list[Worker]:
        return sorted(self._workers)

    async def note_past(self, row: PastMetadata, since: int) -> None:
        past = self._tables.past_metadata
        past.put((row.worker, row.digest), row)
        mine = [row_ for row_ in past if row_.worker == row.worker]
        newest = sorted(mine, key=lambda r: (-r.until, r.digest))
        for place, old in enumerate(newest):
            if place >= KEPT_METADATA or old.until < since:
                past.pop((old.worker, old.digest))

    async def past(self, since: int) -> list[PastMetadata]:
        return sorted(row for row in self._tables.past_metadata if row.until >= since)

    async def troubled(self) -> list[Worker]:
        return sorted(row for row in self._workers if row.troubles is not None)

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        silent = (row for row in self._workers if row.last_seen < cutoff)
        return sorted(row for row in silent if row.status in statuses)
