"""Rows of `inbox` and `job_aliases`."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.domain.rows.records import InboxRow, JobAlias
from windlass.store.sql.session import Role, Session


class InboxRead(Role):
    """Reads rows of `inbox` and `job_aliases`."""

    __slots__ = ()

    async def waiting(self, after: int, count: int) -> list[InboxRow]:
        """Returns at most `count` rows above id `after`, ascending."""
        return inbox_of(self._session, await self._session.fetch("waiting_inbox", after, count))

    async def oldest(self) -> int | None:
        """Returns when the first row that still waits was submitted; None without one."""
        found: int | None = await self._session.fetch_value("oldest_inbox")
        return found

    async def alias(self, job: int) -> int | None:
        """Returns the job that replaced this one because its key was taken, if any."""
        found: int | None = await self._session.fetch_value("job_alias", job)
        return found


class Inbox(InboxRead):
    """Reads and writes rows of `inbox` and `job_aliases`."""

    __slots__ = ()

    async def put(self, rows: Sequence[InboxRow]) -> None:
        """Adds rows as users' transactions do, with fresh ids (the rows' own are ignored)."""
        pack = self._session.pack
        for row in rows:
            values = row.at, pack(row.jobs), row.submitted_by, pack(row.namespaces)
            await self._session.insert("insert_inbox", (*values, row.body.decode()))

    async def take(self, ids: Sequence[int]) -> list[int]:
        """Removes rows and returns the ids of those that were there, ascending.

        Other transactions that do the same wait until this one ends.
        """
        if not ids:
            return []
        # The second server sees everything that the first has moved.
        await self._session.lock("lock_inbox")
        rows = await self._session.fetch("take_inbox", self._session.ids(ids))
        return sorted(row[0] for row in rows)

    async def add_aliases(self, rows: Sequence[JobAlias]) -> None:
        """Adds aliases of jobs that have none."""
        await self._session.many("insert_aliases", "iii", rows)

    async def trim_aliases(self, before: int, count: int) -> int:
        """Removes up to `count` aliases from before this time; returns how many."""
        return await self._session.execute("trim_aliases", before, count)


def inbox_of(session: Session, rows: list[Any]) -> list[InboxRow]:
    """Returns rows of `inbox`; one whose lists cannot be read has no jobs."""
    return [_row(session, row) for row in rows]


def _row(session: Session, row: Sequence[Any]) -> InboxRow:
    number, at, jobs, submitted_by, namespaces, body = row
    try:
        ids, names = session.unpack_integers(jobs), session.unpack_texts(namespaces)
    except (msgspec.DecodeError, RecursionError):
        ids, names = (), ()
    return InboxRow(number, at, ids, submitted_by, names, body.encode())
