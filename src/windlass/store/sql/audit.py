"""Rows of `audit`."""

from collections.abc import Sequence
from typing import Final

from windlass.domain.access.audit import AuditRow
from windlass.store.sql.session import Role

NEWEST: Final = 2**63 - 1  # above every id


class AuditRead(Role):
    """Reads rows of `audit`."""

    __slots__ = ()

    async def read(
        self, after: int, since: int, namespaces: Sequence[str], count: int
    ) -> list[AuditRow]:
        """Returns at most `count` rows above id `after` and not before `since`, ascending.

        With `namespaces`, only rows of these.
        """
        wanted = self._session.texts(namespaces) if namespaces else None
        return await self._session.rows(AuditRow, "read_audit", after, since, wanted, count)

    async def recent(self, before: int, count: int) -> list[AuditRow]:
        """Returns at most `count` rows below id `before` (0: all), descending."""
        return await self._session.rows(AuditRow, "recent_audit", before or NEWEST, count)


class Audit(AuditRead):
    """Reads and writes rows of `audit`."""

    __slots__ = ()

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Appends with fresh ids (the rows' own are ignored); readers meet them in order."""
        if not rows:
            return
        # Servers take turns, so that ids become visible in their order.
        await self._session.lock("lock_audit")
        values = [row[1:] for row in rows]
        await self._session.number_many("audit", "insert_audit", "iiiiooooooooo", values)

    async def trim(self, before: int, count: int) -> int:
        """Removes at most so many rows from before this time, oldest first; returns how many."""
        return await self._session.execute("trim_audit", before, count)
