"""Between rows and what SQLite stores, with as little Python for each row as can be."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any

import apsw

from windlass.domain.rows.records import Due, Wait

Row = tuple[Any, ...]
COUNT_BITS = 18  # a job may name 100,000 others in each of two ways; also in statements


def wait_row(wait: Wait) -> Row:
    shape, rank, _, *rest = wait.ticket
    return (*wait[:5], shape, rank, *rest)


def due_row(due: Due) -> Row:
    shape, rank, _, *rest = due.ticket
    return (*due[:3], shape, rank, *rest)


@cache
def _packed(count: int) -> Struct:
    """Returns the packer for this length, built once: a third of the time that an array takes."""
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
