"""The statements of the .sql files, loaded once, and rows as SQLite stores them.

Shared statements are written for PostgreSQL. Here parameters get SQLite's form, an array becomes a
table-valued function, and locks are dropped, because one transaction runs at a time.

Each row takes as little Python as possible. A statement for 25 rows takes about two thirds of the
time of 25 statements, and does not evict the other statements from apsw's cache, a ring that each
execution advances.
"""

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from struct import Struct
from types import MappingProxyType
from typing import Any

import apsw

from windlass.domain.rows.records import Due, Wait
from windlass.store.sql.queries import load_queries

_SEQUENCE = re.compile(r"nextval\('(\w+)_ids'\)")
_NUMBERS = re.compile(r"= ANY \(\$(\d+)::text::(?:bigint|integer|smallint)\[\]\)")
_TEXTS = re.compile(r"= ANY \(\$(\d+)::text\[\]\)")
_PARAMETER = re.compile(r"\$(\d+)(?:::[a-z]+(?:\[\])?)*")
_LOCK = re.compile(r" FOR (?:NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)(?: OF \w+)?(?: SKIP LOCKED)?$")
Row = tuple[Any, ...]
COUNT_BITS = 18  # a job may name 100,000 others in each of two ways; also in statements
WIDTHS = (25, 5, 1)
_ONE_ROW = re.compile(r"^INSERT .* VALUES \(\?(?:, \?)*\)$")


def adapt(statement: str) -> str:
    """Returns a shared statement in SQLite's form; SQLite's own statements stay as they are.

    A number from a sequence becomes the last parameter.
    """
    last = max((int(number) for number in _PARAMETER.findall(statement)), default=0)
    statement = _SEQUENCE.sub(f"?{last + 1}", statement)
    statement = _NUMBERS.sub(r"IN carray(?\1)", statement)
    statement = _TEXTS.sub(r"IN (SELECT value FROM json_each(?\1))", statement)
    return _LOCK.sub("", _PARAMETER.sub(r"?\1", statement))


# One transaction runs at a time: statements that lock on PostgreSQL only read here.
_READS = {
    "lock_free_limits": "read_limits",
    "lock_jobs": "read_jobs",
    "lock_leases": "read_leases",
    "lock_limits": "read_limits",
    "lock_waits": "read_waits",
    "lock_workers": "read_workers",
    "lock_workflows": "read_workflows",
    "read_ready": "peek",
    "share_jobs": "read_jobs",
}


_STATEMENTS = load_queries("sqlite")


QUERIES: Mapping[str, str] = MappingProxyType(
    {name: adapt(statement) for name, statement in _STATEMENTS.items()}
    | {name: _STATEMENTS[read] for name, read in _READS.items()}
)


SEQUENCES: Mapping[str, str] = MappingProxyType(
    {name: found[1] for name, text in _STATEMENTS.items() if (found := _SEQUENCE.search(text))}
)


def wait_row(wait: Wait) -> Row:
    shape, rank, _, *rest = wait.ticket
    return (*wait[:5], shape, rank, *rest)


def due_row(due: Due) -> Row:
    shape, rank, _, *rest = due.ticket
    return (*due[:3], shape, rank, *rest)


@cache
def _packed(count: int) -> Struct:
    """Returns the packer for this length, built once; it takes a third of the time of an array."""
    return Struct(f"{count}q")


def pack(edges: Sequence[int]) -> bytes:
    """Packs edges, eight bytes each, in the machine's byte order."""
    return _packed(len(edges)).pack(*edges)


def unpack(packed: bytes) -> tuple[int, ...]:
    return _packed(len(packed) // 8).unpack(packed)


def counted(counts: Mapping[int, int]) -> Any:
    """Returns an array of jobs, ascending, each with a number in its lowest `COUNT_BITS`."""
    return integers([job << COUNT_BITS | number for job, number in sorted(counts.items())])


def integers(values: Iterable[int]) -> Any:  # apsw does not export the binding's type
    """Returns an array for `carray(?)`; NULL is the empty one."""
    numbers = array("q", values)
    return apsw.carray(numbers) if numbers else None


class BulkInsert:
    """An `INSERT … VALUES (…)` of one row, also written out for several."""

    def __init__(self, statement: str) -> None:
        head, separator, row = statement.rpartition(" VALUES ")
        if not separator or not (row.startswith("(") and row.endswith(")")):
            raise ValueError(f"expected a statement that ends in VALUES (…), got {statement!r}")
        self._statements = tuple(
            (width, head + separator + ", ".join([row] * width)) for width in WIDTHS
        )

    @staticmethod
    def fits(statement: str) -> bool:
        """Returns True if this is such a statement."""
        return _ONE_ROW.search(statement) is not None

    def run(self, connection: apsw.Connection, rows: Sequence[Sequence[object]]) -> None:
        """Inserts `rows`, in order."""
        execute, flat = connection.execute, chain.from_iterable
        start, end = 0, len(rows)
        for width, statement in self._statements:
            while end - start >= width:
                execute(statement, tuple(flat(rows[start : start + width])))
                start += width
