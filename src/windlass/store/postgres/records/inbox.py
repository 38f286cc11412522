"""Rows of `inbox` and `job_aliases`."""

from collections.abc import Sequence

from windlass.domain.rows.records import InboxRow, JobAlias
from windlass.store.postgres.columns import integers
from windlass.store.postgres.session import Rows, Session


class PostgresInbox:
    """`InboxWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def waiting(self, after: int, count: int) -> list[InboxRow]:
        return inbox_of(await self._session.fetch("waiting_inbox", after, count))

    async def oldest(self) -> int | None:
        found: int | None = await self._session.fetch_value("oldest_inbox")
        return found

    async def alias(self, job: int) -> int | None:
        found: int | None = await self._session.fetch_value("job_alias", job)
        return found

    async def put(self, rows: Sequence[InboxRow]) -> None:
        for row in rows:
            ids = list(row.jobs)
            values = row.at, ids, row.submitted_by, list(row.namespaces), row.body.decode()
            await self._session.execute("insert_inbox", *values)

    async def take(self, ids: Sequence[int]) -> list[int]:
        if not ids:
            return []
        # A server that comes second sees all that the first has moved.
        await self._session.execute("lock_inbox")
        rows = await self._session.fetch("take_inbox", integers(sorted(ids)))
        return sorted(row[0] for row in rows)

    async def add_aliases(self, rows: Sequence[JobAlias]) -> None:
        if rows:
            columns = zip(*rows, strict=True)
            await self._session.execute("insert_aliases", *map(integers, columns))

    async def trim_aliases(self, before: int, count: int) -> int:
        status = await self._session.execute("trim_aliases", before, count)
        return int(status.rpartition(" ")[2])


def inbox_of(rows: Rows) -> list[InboxRow]:
    """Returns rows of `inbox`."""
    return [_row(*row) for row in rows]


def _row(
    number: int, at: int, jobs: list[int], submitted_by: str, namespaces: list[str], body: str
) -> InboxRow:
    return InboxRow(number, at, tuple(jobs), submitted_by, tuple(namespaces), body.encode())
