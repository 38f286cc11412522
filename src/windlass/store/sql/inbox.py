"""Rows of `inbox` and `job_aliases`."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.domain.rows.records import InboxRow, JobAlias
from windlass.store.sql.session import Role, Session, query


class Inbox(Role):
    """Reads and writes rows of `inbox` and `job_aliases`."""

    __slots__ = ()

    async def waiting(self, after: int, count: int) -> list[InboxRow]:
        """Returns at most `count` rows above id `after`, ascending."""
        return inbox_of(self._session, await self._session.fetch("waiting_inbox", after, count))

    oldest = query("oldest_inbox").optional()
    """Returns when the first row that still waits was submitted; None without one."""

    alias = query("job_alias", int).optional()
    """Returns the job that replaced this one because its key was taken, if any."""

    async def put(self, rows: Sequence[InboxRow]) -> None:
        """Adds rows as users' transactions do, with fresh ids (the rows' own are ignored)."""
        pack = self._session.pack
        for row in rows:
            values = row.at, pack(row.jobs), row.submitted_by, pack(row.namespaces)
            await self._session.insert("insert_inbox", (*values, row.body.decode()))

    async def take(self, ids: Sequence[int]) -> list[int]:
        """Removes rows and returns the ids that existed, ascending.

        Other transactions that do the same wait until this one ends.
        """
        if not ids:
            return []
        # The second server sees everything that the first has moved.
        await self._session.lock("lock_inbox")
        rows = await self._session.fetch("take_inbox", self._session.ids(ids))
        return sorted(row[0] for row in rows)

    add_aliases = query("insert_aliases").many("iii", JobAlias)
    """Adds aliases of jobs that have none."""

    trim_aliases = query("trim_aliases", int, int).count()
    """Removes aliases from before a time, up to a number; returns how many."""


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
