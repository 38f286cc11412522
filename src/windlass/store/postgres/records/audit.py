"""Rows of `audit`."""

from collections.abc import Sequence
from typing import Final

from windlass.domain.access.audit import AuditRow
from windlass.store.postgres.session import Session

NEWEST: Final = 2**63 - 1  # above every id


class PostgresAudit:
    """`AuditWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def read(
        self, after: int, since: int, namespaces: Sequence[str], count: int
    ) -> list[AuditRow]:
        wanted = list(namespaces) or None
        rows = await self._session.fetch("read_audit", after, since, wanted, count)
        return list(map(AuditRow._make, rows))

    async def recent(self, before: int, count: int) -> list[AuditRow]:
        rows = await self._session.fetch("recent_audit", before or NEWEST, count)
        return list(map(AuditRow._make, rows))

    async def append(self, rows: Sequence[AuditRow]) -> None:
        if not rows:
            return
        # Servers take turns, so that ids become visible in their order.
        await self._session.execute("lock_audit")
        columns = [list(column) for column in zip(*(row[1:] for row in rows), strict=True)]
        await self._session.execute("insert_audit", *columns)

    async def trim(self, before: int, count: int) -> int:
        status = await self._session.execute("trim_audit", before, count)
        return int(status.rpartition(" ")[2])
