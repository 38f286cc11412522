"""Rows of `audit`."""

from collections.abc import Sequence
from typing import Final

import apsw

from windlass.domain.access.audit import AuditRow
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES

NEWEST: Final = 2**63 - 1  # above every id


class SqliteAudit:
    """`AuditWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._sequences = sequences

    async def read(
        self, after: int, since: int, namespaces: Sequence[str], count: int
    ) -> list[AuditRow]:
        wanted = "\n".join(["", *namespaces, ""]) if namespaces else None
        rows = self._connection.execute(QUERIES["read_audit"], (after, since, wanted, count))
        return list(map(AuditRow._make, rows))

    async def recent(self, before: int, count: int) -> list[AuditRow]:
        found = self._connection.execute(QUERIES["recent_audit"], (before or NEWEST, count))
        return list(map(AuditRow._make, found))

    async def append(self, rows: Sequence[AuditRow]) -> None:
        if rows:
            numbers = self._sequences.take("audit", len(rows))
            numbered = [(number, *row[1:]) for number, row in zip(numbers, rows, strict=True)]
            self._connection.executemany(QUERIES["insert_audit"], numbered)

    async def trim(self, before: int, count: int) -> int:
        self._connection.execute(QUERIES["trim_audit"], (before, count))
        return self._connection.changes()
