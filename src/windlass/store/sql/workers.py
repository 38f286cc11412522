"""Rows of `workers`."""

from collections.abc import Sequence

from windlass.domain.matching.workers import KEPT_METADATA, KEPT_NAMES, PastMetadata
from windlass.domain.rows.records import (
    Worker,
)
from windlass.store.sql.session import Role


class WorkersRead(Role):
    """Reads rows of `workers`."""

    __slots__ = ()

    async def read(self, ids: Sequence[int]) -> dict[int, Worker]:
        """Returns these workers, not locked; unknown ids are absent."""
        return await self._by_id("read_workers", ids)

    async def read_name(self, name: str) -> Worker | None:
        """Returns the worker of this name, not locked."""
        return await self._session.row(Worker, "read_worker_name", name)

    async def _by_id(self, query: str, ids: Sequence[int]) -> dict[int, Worker]:
        if not ids:
            return {}
        rows = await self._session.rows(Worker, query, self._session.ids(ids))
        return {row.id: row for row in rows}

    async def all(self) -> list[Worker]:
        return await self._session.rows(Worker, "all_workers")

    async def past(self, since: int) -> list[PastMetadata]:
        """Returns what workers reported until `since` or later, ascending by worker and digest."""
        return await self._session.rows(PastMetadata, "past_metadata", since)

    async def troubled(self) -> list[Worker]:
        """Returns workers that have `troubles`, ascending by id, not locked."""
        return await self._session.rows(Worker, "troubled_workers")

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        """Returns workers in one of `statuses` last seen before `cutoff`, not locked."""
        if not statuses:
            return []
        return await self._session.rows(
            Worker, "silent_workers", cutoff, self._session.ids(statuses)
        )


class Workers(WorkersRead):
    """Reads and writes rows of `workers`.

    Unknown workers are ignored; lists ascend by id.
    """

    __slots__ = ()

    async def lock(self, ids: Sequence[int]) -> dict[int, Worker]:
        """Locks and reads, ascending; unknown ids are absent."""
        return await self._by_id("lock_workers", ids)

    async def lock_name(self, name: str) -> Worker | None:
        return await self._session.row(Worker, "lock_worker_name", name)

    async def insert(self, row: Worker) -> int:
        """Inserts with a fresh id (the row's own `id` is ignored) and returns its id.

        Returns 0 if another transaction has just inserted a worker of this name.
        """
        return await self._session.insert("insert_worker", row[1:])

    async def update(self, rows: Sequence[Worker]) -> None:
        """Writes every column of these rows."""
        await self._session.many("update_workers", "ioiiiiiiooooi", rows)

    async def beat(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Writes what a plain sync changes, given as (worker, seq, last_seen, last_lease)."""
        await self._session.many("beat_workers", "iiii", rows)

    async def remove(self, worker: int) -> None:
        await self._session.execute("keep_worker_name", worker)
        await self._session.execute("trim_worker_names", worker - KEPT_NAMES)
        await self._session.execute("remove_worker", worker)
        await self._session.execute("remove_past_metadata", worker)

    async def note_past(self, row: PastMetadata, since: int) -> None:
        """Keeps the metadata that a worker reported until now; of each worker the newest
        `KEPT_METADATA`.

        Metadata that ended before `since` is forgotten.
        """
        await self._session.execute("put_past_metadata", *row)
        await self._session.execute("trim_past_metadata", row.worker, since, KEPT_METADATA)
