"""One connection in one transaction: run named statements at once, without waiting."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

import apsw
import msgspec

from windlass.store.sql.session import maker
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import integers, unpack
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES, SEQUENCES

R = TypeVar("R", bound=tuple[Any, ...])

_encode = msgspec.json.encode
_integers = msgspec.json.Decoder(tuple[int, ...]).decode
_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class SqliteSession:
    """`Session`; made once for a connection."""

    __slots__ = ("_execute", "connection", "sequences")

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self.connection = connection
        self.sequences = sequences
        self._execute = connection.execute

    async def fetch(self, name: str, *args: object) -> list[Any]:
        return self._execute(QUERIES[name], args).fetchall()

    async def fetch_value(self, name: str, *args: object) -> Any:
        rows: list[Any] = self._execute(QUERIES[name], args).fetchall()
        return rows[0][0] if rows else None

    async def rows(self, kind: type[R], name: str, *args: object) -> list[R]:
        return list(map(maker(kind), self._execute(QUERIES[name], args)))

    async def row(self, kind: type[R], name: str, *args: object) -> R | None:
        rows = self._execute(QUERIES[name], args).fetchall()
        return maker(kind)(rows[0]) if rows else None

    async def execute(self, name: str, *args: object) -> int:
        self._execute(QUERIES[name], args)
        return self.connection.changes()

    async def insert(self, name: str, values: Sequence[object]) -> int:
        sequence = SEQUENCES[name]
        (number,) = self.sequences.take(sequence)
        if self._execute(QUERIES[name], (*values, number)).fetchall():
            return number
        self.sequences.give_back(sequence)
        return 0

    async def many(self, name: str, kinds: str, rows: Sequence[Sequence[object]]) -> None:
        del kinds
        statement = QUERIES[name]
        bulk = _bulk(statement)
        if bulk is None:
            self.connection.executemany(statement, rows)
        else:
            bulk.run(self.connection, rows)

    async def number_many(
        self, sequence: str, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> None:
        if rows:
            numbers = self.sequences.take(sequence, len(rows))
            numbered = [(number, *row) for number, row in zip(numbers, rows, strict=True)]
            await self.many(name, kinds, numbered)

    async def fetch_many(
        self, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> list[Any]:
        del kinds
        return list(self.connection.executemany(QUERIES[name], rows))

    async def numbers(self, name: str, count: int) -> Sequence[int]:
        return self.sequences.take(name.removesuffix("_numbers"), count)

    async def lock(self, name: str, *args: object) -> None:
        """Does nothing: SQLite runs one transaction at a time."""

    def ids(self, values: Iterable[int]) -> Any:
        return integers(sorted(set(values)))

    def integers(self, values: Iterable[int]) -> Any:
        return integers(values)

    def texts(self, values: Iterable[str]) -> str:
        return self.pack(values)

    def pack(self, values: Iterable[int] | Iterable[str]) -> str:
        return _encode(tuple(values)).decode()

    def unpack_integers(self, value: str) -> tuple[int, ...]:
        return _integers(value)

    def unpack_edges(self, value: bytes) -> tuple[int, ...]:
        return unpack(value)

    def unpack_texts(self, value: str) -> tuple[str, ...]:
        return _texts(value)


@cache
def _bulk(statement: str) -> BulkInsert | None:
    """Returns how to insert many rows at once, unless the statement does something else."""
    return BulkInsert(statement) if BulkInsert.fits(statement) else None
