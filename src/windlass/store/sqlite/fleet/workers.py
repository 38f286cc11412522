"""Rows of `workers`."""

from collections.abc import Sequence

import apsw

from windlass.domain.matching.workers import KEPT_METADATA, KEPT_NAMES, PastMetadata
from windlass.domain.rows.records import Worker
from windlass.store.sqlite.rows import as_worker, integers
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


class SqliteWorkers:
    """`WorkersWrite` over one connection. Unknown workers are passed over; lists ascend by id."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._sequences = sequences

    async def read(self, ids: Sequence[int]) -> dict[int, Worker]:
        return await self.lock(ids)

    async def read_name(self, name: str) -> Worker | None:
        return await self.lock_name(name)

    async def lock(self, ids: Sequence[int]) -> dict[int, Worker]:
        if not ids:
            return {}
        rows = self._execute(QUERIES["workers"], (integers(sorted(ids)),))
        return {row[0]: as_worker(row) for row in rows}

    async def lock_name(self, name: str) -> Worker | None:
        rows = self._execute(QUERIES["worker_by_name"], (name,)).fetchall()
        return as_worker(rows[0]) if rows else None

    async def insert(self, row: Worker) -> int:
        (worker,) = self._sequences.take("worker")
        self._execute(QUERIES["insert_worker"], (worker, *row[1:]))
        return worker

    async def update(self, rows: Sequence[Worker]) -> None:
        self._executemany(QUERIES["update_workers"], rows)

    async def beat(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        self._executemany(QUERIES["beat"], rows)

    async def remove(self, worker: int) -> None:
        self._execute(QUERIES["keep_worker_name"], (worker,))
        self._execute(QUERIES["trim_worker_names"], (worker - KEPT_NAMES,))
        self._execute(QUERIES["remove_worker"], (worker,))
        self._execute(QUERIES["remove_past_metadata"], (worker,))

    async def all(self) -> list[Worker]:
        return list(map(as_worker, self._execute(QUERIES["all_workers"])))

    async def note_past(self, row: PastMetadata, since: int) -> None:
        self._execute(QUERIES["put_past_metadata"], row)
        self._execute(QUERIES["trim_past_metadata"], (row.worker, since, KEPT_METADATA))

    async def past(self, since: int) -> list[PastMetadata]:
        return list(map(PastMetadata._make, self._execute(QUERIES["past_metadata"], (since,))))

    async def troubled(self) -> list[Worker]:
        return list(map(as_worker, self._execute(QUERIES["troubled_workers"])))

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        if not statuses:
            return []
        rows = self._execute(QUERIES["silent_workers"], (cutoff, integers(statuses)))
        return list(map(as_worker, rows))
