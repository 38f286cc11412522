"""Turn rows into the columns that statements take, with little work for each row.

asyncpg writes an array value by value, which costs more than the rest of a statement. So
integers go as one text, made by a JSON encoder in C, and a column that has the same value
in every row goes as that value, beside an empty array.
"""

from collections.abc import Iterable, Sequence

import msgspec

from windlass.store.sql.session import INTEGER

_encode = msgspec.json.Encoder().encode


def integers(column: Sequence[int | None]) -> str:
    """Returns the literal of an array of integers; None becomes NULL."""
    return "{" + _encode(column)[1:-1].decode() + "}"


def ascending(ids: Iterable[int]) -> str:
    """Returns the literal of these ids in the one order in which all lock, each once."""
    return integers(sorted(set(ids)))


def spread(kinds: str, columns: Sequence[Sequence[object]]) -> list[object]:
    """Returns all arrays, then all scalars: what `coalesce(u.column, $scalar)` needs.

    `kinds` has one letter for each column. A column that varies is an array with the
    scalar NULL, one that does not is an empty array with the scalar.
    """
    arrays: list[object] = []
    scalars: list[object] = []
    for kind, column in zip(kinds, columns, strict=True):
        first = column[0]
        if first == column[-1] and column.count(first) == len(column):
            arrays.append("{}" if kind == INTEGER else [])
            scalars.append(first)
        else:
            arrays.append(integers(column) if kind == INTEGER else column)  # type: ignore[arg-type]
            scalars.append(None)
    return arrays + scalars
