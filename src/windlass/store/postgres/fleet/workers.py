"""Rows of `workers`."""

from collections.abc import Sequence

from windlass.domain.matching.workers import KEPT_METADATA, KEPT_NAMES, PastMetadata
from windlass.domain.rows.records import Worker
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Rows, Session

TEXTS = frozenset({"name", "static", "dynamic", "troubles", "reason"})


class PostgresWorkers:
    """`WorkersWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def read(self, ids: Sequence[int]) -> dict[int, Worker]:
        return await self._by_id("read_workers", ids)

    async def read_name(self, name: str) -> Worker | None:
        return await self._by_name("read_worker_name", name)

    async def lock(self, ids: Sequence[int]) -> dict[int, Worker]:
        return await self._by_id("lock_workers", ids)

    async def lock_name(self, name: str) -> Worker | None:
        return await self._by_name("lock_worker_name", name)

    async def _by_id(self, query: str, ids: Sequence[int]) -> dict[int, Worker]:
        if not ids:
            return {}
        rows = workers_of(await self._session.fetch(query, ascending(ids)))
        return {row.id: row for row in rows}

    async def _by_name(self, query: str, name: str) -> Worker | None:
        rows = workers_of(await self._session.fetch(query, name))
        return rows[0] if rows else None

    async def insert(self, row: Worker) -> int:
        worker: int | None = await self._session.fetch_value("insert_worker", *row[1:])
        return worker or 0

    async def update(self, rows: Sequence[Worker]) -> None:
        if rows:
            columns = zip(Worker._fields, zip(*rows, strict=True), strict=True)
            args = [column if name in TEXTS else integers(column) for name, column in columns]
            await self._session.execute("update_workers", *args)

    async def beat(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("beat_workers", *columns)

    async def remove(self, worker: int) -> None:
        await self._session.execute("keep_worker_name", worker)
        await self._session.execute("trim_worker_names", worker - KEPT_NAMES)
        await self._session.execute("remove_worker", worker)
        await self._session.execute("remove_past_metadata", worker)

    async def all(self) -> list[Worker]:
        return workers_of(await self._session.fetch("all_workers"))

    async def note_past(self, row: PastMetadata, since: int) -> None:
        await self._session.execute("put_past_metadata", *row)
        await self._session.execute("trim_past_metadata", row.worker, since, KEPT_METADATA)

    async def past(self, since: int) -> list[PastMetadata]:
        rows = await self._session.fetch("past_metadata", since)
        return list(map(PastMetadata._make, rows))

    async def troubled(self) -> list[Worker]:
        return workers_of(await self._session.fetch("troubled_workers"))

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        return workers_of(await self._session.fetch("silent_workers", cutoff, list(statuses)))


def workers_of(rows: Rows) -> list[Worker]:
    return list(map(Worker._make, rows))
