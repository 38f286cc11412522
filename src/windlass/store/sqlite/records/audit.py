"""Rows of `audit`."""

from collections.abc import Sequence

import apsw

from windlass.domain.access.audit import AuditRow
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


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

    async def append(self, rows: Sequence[AuditRow]) -> None:
        if rows:
            numbers = self._sequences.take("audit", len(rows))
            numbered = [(number, *row[1:]) for number, row in zip(numbers, rows, strict=True)]
            self._connection.executemany(QUERIES["insert_audit"], numbered)

    async def trim(self, before: int, count: int) -> int:
        self._connection.execute(QUERIES["trim_audit"], (before, count))
        return self._connection.changes()
