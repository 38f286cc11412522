"""Rows of `workers`."""

from collections.abc import Sequence

from windlass.domain.matching.workers import KEPT_METADATA, KEPT_NAMES, PastMetadata
from windlass.domain.rows.records import Worker
from windlass.store.sql.session import Role, of_ids, query


class Workers(Role):
    """Reads and writes rows of `workers`.

    Unknown workers are ignored; lists ascend by id.
    """

    __slots__ = ()

    read = of_ids("read_workers").by_id(Worker)
    """Returns these workers, not locked; unknown ids are absent."""

    read_name = query("read_worker_name", str).row(Worker)
    """Returns the worker of this name, not locked."""

    all = query("all_workers").rows(Worker)

    past = query("past_metadata", int).rows(PastMetadata)
    """Returns what workers reported until a time or later, ascending by worker and digest."""

    troubled = query("troubled_workers").rows(Worker)
    """Returns workers that have `troubles`, ascending by id, not locked."""

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        """Returns workers in one of `statuses` last seen before `cutoff`, not locked."""
        if not statuses:
            return []
        return await self._session.rows(
            Worker, "silent_workers", cutoff, self._session.ids(statuses)
        )

    lock = of_ids("lock_workers").by_id(Worker)
    """Locks and reads, ascending; unknown ids are absent."""

    lock_name = query("lock_worker_name", str).row(Worker)

    insert = query("insert_worker").insert(Worker)
    """Inserts with a fresh id (the row's own `id` is ignored) and returns its id.

    Returns 0 if another transaction has just inserted a worker of this name.
    """

    update = query("update_workers").many("ioiiiiiiooooi", Worker)
    """Writes every column of these rows."""

    beat = query("beat_workers").many("iiii", tuple[int, int, int, int])
    """Writes what a plain sync changes, given as (worker, seq, last_seen, last_lease)."""

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
