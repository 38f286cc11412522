"""Rows of `audit`."""

from collections.abc import Sequence

from windlass.domain.access.audit import AuditRow
from windlass.store.memory.tables import Tables


class MemoryAudit:
    """`AuditWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def read(
        self, after: int, since: int, namespaces: Sequence[str], count: int
    ) -> list[AuditRow]:
        rows = self._tables.audit.between((after + 1,), None)
        return [
            row for row in rows
            if row.at >= since and (not namespaces or row.namespace in namespaces)
        ][:count]  # fmt: skip

    async def recent(self, before: int, count: int) -> list[AuditRow]:
        rows = self._tables.audit.between((), (before,) if before else None)
        return list(rows)[::-1][:count]

    async def append(self, rows: Sequence[AuditRow]) -> None:
        for number, row in zip(self._tables.number("audit", len(rows)), rows, strict=True):
            self._tables.audit.insert(number, row._replace(id=number))

    async def trim(self, before: int, count: int) -> int:
        old = [row for row in self._tables.audit.between((), None) if row.at < before]
        old.sort(key=lambda row: (row.at, row.id))
        for row in old[:count]:
            self._tables.audit.pop(row.id)
        return min(len(old), count)
