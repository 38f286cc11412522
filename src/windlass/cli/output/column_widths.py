"""Chooses how wide the columns of a table are, so that it fits the terminal."""

from collections.abc import Sequence
from typing import Final, NamedTuple

GAP: Final = 2  # between columns
TINY: Final = 4  # of a column that is narrowed although its values become hard to read


class Column(NamedTuple):
    """A column of a table: how wide its values are, and how narrow it may become."""

    name: str
    width: int
    least: int  # at which its values can still be read
    narrows: bool = True


def fit(columns: Sequence[Column], room: int, spare: Sequence[str] = ()) -> dict[str, int]:
    """Returns the widths of the columns to show.

    Columns in `spare` are left out, the first one first, if there is no room for them. Then the
    widest columns are narrowed, and if need be until their values are hard to read.
    """
    shown = list(columns)
    for name in spare:
        if _total([column.least for column in shown]) <= room:
            break
        shown = [column for column in shown if column.name != name]
    widths = {column.name: column.width for column in shown}
    _narrow(widths, {column.name: column.least for column in shown}, room)
    tiny = {column.name: TINY for column in shown if column.narrows}
    _narrow(widths, tiny, room)
    return widths


def _narrow(widths: dict[str, int], least: dict[str, int], room: int) -> None:
    """Narrows the widest columns until all have room, or none can be narrowed."""
    excess = _total(list(widths.values())) - room
    while excess > 0:
        narrowing = [name for name in widths if widths[name] > least.get(name, widths[name])]
        if not narrowing:
            return
        widest = max(widths[name] for name in narrowing)
        group = [name for name in narrowing if widths[name] == widest]
        lower = [widths[name] for name in narrowing if widths[name] < widest]
        floor = max([*lower, *(least[name] for name in group)])
        step = max(1, min(widest - floor, excess // len(group)))
        for name in group[: max(1, excess // step)]:
            widths[name] -= step
            excess -= step


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
