"""One connection in one transaction: runs named statements and remembers what COMMIT needs.

asyncpg writes an array value by value, which costs more than the rest of a statement. So integers
and names go as one text, and a column that has the same value in every row goes as that value,
beside an empty array.
"""

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import asyncpg
import msgspec

from windlass.domain.rows.gaps import Mark
from windlass.store.postgres.connections import Link
from windlass.store.sql.queries import load_queries
from windlass.store.sql.session import INTEGER, maker

_encode = msgspec.json.Encoder().encode


def integers(column: Sequence[int | None]) -> str:
    """Returns the literal of an array of integers; None becomes NULL."""
    return "{" + _encode(column)[1:-1].decode() + "}"


def texts(column: Iterable[str]) -> str:
    """Returns the literal of an array of texts."""
    quoted = [it.replace("\\", "\\\\").replace('"', '\\"') for it in column]
    return '{"' + '","'.join(quoted) + '"}' if quoted else "{}"


def ascending(ids: Iterable[int]) -> str:
    """Returns the literal of these ids, each once, in the order in which everybody locks."""
    return integers(sorted(set(ids)))


def spread(kinds: str, columns: Sequence[Sequence[object]]) -> list[object]:
    """Returns all arrays, then all scalars, for `coalesce(u.column, $scalar)`.

    `kinds` has one letter for each column. A column that varies becomes an array, and its scalar is
    NULL; a constant one becomes an empty array and a scalar.
    """
    if len(columns[0]) == 1:  # as most are
        empty = ["{}" if kind == INTEGER else None for kind in kinds]
        return [*empty, *[column[0] for column in columns]]
    arrays: list[object] = []
    scalars: list[object] = []
    for kind, column in zip(kinds, columns, strict=True):
        first = column[0]
        if first == column[-1] and column.count(first) == len(column):
            arrays.append("{}" if kind == INTEGER else None)
            scalars.append(first)
        else:
            arrays.append(integers(column) if kind == INTEGER else column)  # type: ignore[arg-type]
            scalars.append(None)
    return arrays + scalars


QUERIES = load_queries("postgres")

R = TypeVar("R", bound=tuple[Any, ...])
Rows = list[asyncpg.Record]


class Session:
    """Implements `Session` of `store/sql`: what the roles of one transaction share."""

    __slots__ = ("event", "link", "statements", "vouches")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.statements = 0
        self.vouches = False
        """Whether its answer is what another transaction wrote, which must be durable by then."""
        self.event: Mark | None = None  # the newest event that this transaction has written

    def fetch(self, name: str, *args: object) -> Coroutine[Any, Any, Rows]:
        self.statements += 1
        return self.link.connection.fetch(QUERIES[name], *args)

    def fetch_value(self, name: str, *args: object) -> Coroutine[Any, Any, Any]:
        self.statements += 1
        return self.link.connection.fetchval(QUERIES[name], *args)

    async def rows(self, kind: type[R], name: str, *args: object) -> list[R]:
        return list(map(maker(kind), await self.fetch(name, *args)))

    async def row(self, kind: type[R], name: str, *args: object) -> R | None:
        rows = await self.fetch(name, *args)
        return maker(kind)(rows[0]) if rows else None

    async def execute(self, name: str, *args: object) -> int:
        self.statements += 1
        status = await self.link.connection.execute(QUERIES[name], *args)
        count = status.rpartition(" ")[2]  # "DELETE 3", but also "BEGIN"
        return int(count) if count.isdecimal() else 0

    async def insert(self, name: str, values: Sequence[object]) -> int:
        return await self.fetch_value(name, *values) or 0

    async def many(self, name: str, kinds: str, rows: Sequence[Sequence[object]]) -> int:
        return await self.execute(name, *_columns(kinds, rows)) if rows else 0

    async def fetch_many(
        self, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> list[Any]:
        return await self.fetch(name, *_columns(kinds, rows)) if rows else []

    async def numbers(self, name: str, count: int) -> Sequence[int]:
        numbers: list[int] = await self.fetch_value(name, count)
        return numbers

    async def number_many(
        self, sequence: str, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> None:
        """The statement, or the table, draws the numbers."""
        del sequence
        await self.many(name, kinds, rows)

    async def lock(self, name: str, *args: object) -> None:
        await self.execute(name, *args)

    def ids(self, values: Iterable[int]) -> str:
        return ascending(values)

    def integers(self, values: Iterable[int]) -> str:
        return integers(list(values))

    def texts(self, values: Iterable[str]) -> list[str]:
        return list(values)

    def pack(self, values: Iterable[int] | Iterable[str]) -> list[Any]:
        return list(values)

    def unpack_integers(self, value: list[int]) -> tuple[int, ...]:
        return tuple(value)

    def unpack_edges(self, value: list[int]) -> tuple[int, ...]:
        return tuple(value)

    def unpack_texts(self, value: list[str]) -> tuple[str, ...]:
        return tuple(value)

    def commit(self, mark: int, at: int) -> Coroutine[Any, Any, str]:
        """Commits; if anything was written, also leaves the mark."""
        self.statements += 1
        noted = QUERIES["commit"] % (mark, at, self.vouches)
        return self.link.connection.execute(noted)


def _columns(kinds: str, rows: Sequence[Sequence[object]]) -> list[Any]:
    """Returns the columns of these rows as arrays."""
    columns = zip(kinds, zip(*rows, strict=True), strict=True)
    return [integers(its) if kind == INTEGER else its for kind, its in columns]
