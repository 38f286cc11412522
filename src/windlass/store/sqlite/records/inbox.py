"""Rows of `inbox` and `job_aliases`."""

from collections.abc import Sequence

import apsw
import msgspec

from windlass.domain.rows.records import InboxRow, JobAlias
from windlass.store.sqlite.rows import Row, integers
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES

_numbers = msgspec.json.Decoder(tuple[int, ...]).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode
_text = msgspec.json.encode


class SqliteInbox:
    """`InboxWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._sequences = sequences

    async def waiting(self, after: int, count: int) -> list[InboxRow]:
        rows = self._connection.execute(QUERIES["waiting_inbox"], (after, count))
        return list(map(as_inbox, rows))

    async def oldest(self) -> int | None:
        found: Row | None = self._connection.execute(QUERIES["oldest_inbox"]).fetchone()
        return None if found is None else found[0]

    async def alias(self, job: int) -> int | None:
        found: Row | None = self._connection.execute(QUERIES["job_alias"], (job,)).fetchone()
        return None if found is None else found[0]

    async def put(self, rows: Sequence[InboxRow]) -> None:
        if not rows:
            return
        numbers = self._sequences.take("inbox", len(rows))
        columns = [
            (number, row.at, _text(row.jobs).decode(), row.submitted_by,
             _text(row.namespaces).decode(), row.body.decode())
            for number, row in zip(numbers, rows, strict=True)
        ]  # fmt: skip
        self._connection.executemany(QUERIES["insert_inbox"], columns)

    async def take(self, ids: Sequence[int]) -> list[int]:
        if not ids:
            return []
        rows = self._connection.execute(QUERIES["take_inbox"], (integers(sorted(ids)),))
        return sorted(row[0] for row in rows)

    async def add_aliases(self, rows: Sequence[JobAlias]) -> None:
        self._connection.executemany(QUERIES["insert_aliases"], rows)

    async def trim_aliases(self, before: int, count: int) -> int:
        self._connection.execute(QUERIES["trim_aliases"], (before, count))
        return self._connection.changes()


def as_inbox(row: Row) -> InboxRow:
    """Returns a row of `inbox`; one whose lists cannot be read has no jobs."""
    number, at, jobs, submitted_by, namespaces, body = row
    try:
        ids, names = _numbers(jobs), _names(namespaces)
    except (msgspec.DecodeError, RecursionError):
        ids, names = (), ()
    return InboxRow(number, at, ids, submitted_by, names, body.encode())
