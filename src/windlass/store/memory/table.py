"""Dictionaries that can take back what a transaction did to them.

Every change notes in the journal how to undo it, so that a rollback costs as much as the
transaction did, however large the tables are.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Order = tuple[int, ...]


class DuplicateRowError(Exception):
    """A row with this key is there already."""


class Journal:
    """How to undo what the transaction in force has done so far."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] | None = None

    def begin(self) -> None:
        if self._undo is not None:
            raise RuntimeError("a store transaction began inside another one")
        self._undo = []

    def note(self, undo: Callable[[], None]) -> None:
        if self._undo is None:
            raise RuntimeError("a store was written to outside a transaction")
        self._undo.append(undo)

    def commit(self) -> None:
        self._undo = None

    def roll_back(self) -> None:
        for undo in reversed(self._undo or ()):
            undo()
        self._undo = None


class Table(Generic[K, V]):
    """Rows by key. Rows are immutable values, so that putting the old one back undoes all."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rows: dict[K, V] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[V]:
        """Returns all rows, in no order that may be relied upon."""
        return iter(self._rows.values())

    def __getitem__(self, key: K) -> V:
        return self._rows[key]

    def get(self, key: K) -> V | None:
        return self._rows.get(key)

    def insert(self, key: K, row: V) -> None:
        """Adds a row; unlike `put` it refuses a key that is taken."""
        if key in self._rows:
            raise DuplicateRowError(f"expected a new row, got {row!r} for {self._rows[key]!r}")
        self.put(key, row)

    def put(self, key: K, row: V) -> None:
        """Adds a row or replace the one that is there."""
        self._journal.note(partial(self._restore, key, self._rows.get(key)))
        self._place(key, row)

    def pop(self, key: K) -> V | None:
        """Removes and return a row, or None if there is none."""
        row = self._rows.get(key)
        if row is not None:
            self._journal.note(partial(self._restore, key, row))
            self._displace(key)
        return row

    def _restore(self, key: K, row: V | None) -> None:
        if row is None:
            self._displace(key)
        else:
            self._place(key, row)

    def _place(self, key: K, row: V) -> None:
        self._rows[key] = row

    def _displace(self, key: K) -> None:
        del self._rows[key]


class SortedTable(Table[K, V]):
    """A table that also keeps its rows in an order; no two rows may have the same one."""

    def __init__(self, journal: Journal, order: Callable[[V], Order]) -> None:
        super().__init__(journal)
        self._order_of = order
        self._sorted: list[tuple[Order, K]] = []

    def between(self, low: Order, high: Order | None, count: int | None = None) -> list[V]:
        """Returns the first `count` rows from `low` up to `high`, exclusive (None: to the end)."""
        start = self._find(low)
        end = len(self._sorted) if high is None else self._find(high)
        if count is not None:
            end = min(end, start + count)
        return [self._rows[key] for _, key in self._sorted[start:end]]

    def prefixes(self, width: int, below: Order = ()) -> list[Order]:
        """Returns every prefix of this width among the orders that start with `below`."""
        found: list[Order] = []
        position = self._find(below)
        while position < len(self._sorted):
            prefix = self._sorted[position][0][:width]
            if prefix[: len(below)] != below:
                break
            found.append(prefix)
            position = self._find(after(prefix))
        return found

    def _find(self, order: Order) -> int:
        # A shorter tuple comes before all that begin with it, so `order` itself is included.
        return bisect_left(self._sorted, (order,))

    def _place(self, key: K, row: V) -> None:
        if key in self._rows:
            self._displace(key)
        super()._place(key, row)
        insort(self._sorted, (self._order_of(row), key))

    def _displace(self, key: K) -> None:
        del self._sorted[self._find(self._order_of(self._rows[key]))]
        super()._displace(key)


def after(prefix: Order) -> Order:
    """Returns the lowest order behind all that begin with `prefix`."""
    return (*prefix[:-1], prefix[-1] + 1)
