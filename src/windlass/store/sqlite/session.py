"""One connection in one transaction: runs named statements at once, without waiting.

SQLite never suspends, so a transaction that runs to its end without yielding is atomic by
construction. One that waits for something else would let others in, and is refused.
"""

from collections.abc import Awaitable, Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import apsw
import msgspec

from windlass.domain.rows.gaps import SHAPE_MARGIN, first_after
from windlass.ports.loop_time import INLINE
from windlass.store.sql.session import maker
from windlass.store.sqlite.statements import QUERIES, SEQUENCES, BulkInsert, integers, unpack

T = TypeVar("T")
SHAPE: Final = "shape"
OTHERS: Final = ""  # no number of this sequence was given yet
R = TypeVar("R", bound=tuple[Any, ...])
_encode = msgspec.json.encode
_integers = msgspec.json.Decoder(tuple[int, ...]).decode
_texts = msgspec.json.Decoder(tuple[str, ...]).decode


def drive(coroutine: Awaitable[T]) -> T:
    """Returns what `coroutine` returns or raises; RuntimeError if it tries to wait."""
    steps = coroutine.__await__()
    outside = INLINE.set(True)
    try:
        steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        INLINE.reset(outside)
    steps.close()
    raise RuntimeError("a store transaction tried to wait")


class Sequences:
    """The last number given by each sequence; sequences start at 1."""

    def __init__(self, saved: Iterable[tuple[str, int]] = ()) -> None:
        self._saved = dict(saved)
        self._given: dict[str, int] = {}

    def take(self, name: str, count: int = 1) -> range:
        """Returns the next `count` numbers."""
        last = self._last(name)
        self._given[name] = last + count
        return range(last + 1, last + count + 1)

    def give_back(self, name: str) -> None:
        """Takes back the last number."""
        self._given[name] -= 1

    def jump(self, newest: int, now_ms: int) -> int:
        """Continues all sequences after the number it returns, which is above `newest`."""
        names = {OTHERS, *self._saved, *self._given} - {SHAPE}
        first = first_after(max(newest, *map(self._last, names)), now_ms)
        self._given.update(dict.fromkeys(names, first))
        self._given[SHAPE] = self._last(SHAPE) + SHAPE_MARGIN
        return first

    def unsaved(self) -> list[tuple[str, int]]:
        """Returns the numbers that the current transaction must write."""
        return list(self._given.items())

    def reload(self, saved: Iterable[tuple[str, int]]) -> None:
        """Reads the numbers again after another process has used some."""
        self._saved = dict(saved)

    def committed(self) -> None:
        self._saved.update(self._given)
        self._given.clear()

    def rolled_back(self) -> None:
        """Takes back all numbers given since the last commit."""
        self._given.clear()

    def _last(self, name: str) -> int:
        last = self._given.get(name)
        if last is None:
            last = self._saved.get(name)
        if last is not None:
            return last
        return 0 if name in (SHAPE, OTHERS) else self._last(OTHERS)


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

    async def many(self, name: str, kinds: str, rows: Sequence[Sequence[object]]) -> int:
        del kinds
        before = self.connection.total_changes()
        statement = QUERIES[name]
        bulk = _bulk(statement)
        if bulk is None:
            self.connection.executemany(statement, rows)
        else:
            bulk.run(self.connection, rows)
        return self.connection.total_changes() - before

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
    """Returns how to insert many rows at once, if the statement is an insert."""
    return BulkInsert(statement) if BulkInsert.fits(statement) else None
