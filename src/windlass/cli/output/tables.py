"""Tables for people: columns that fit the terminal, states in colour."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from windlass.cli.output.text import DIM, escape_line, print_json, say

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


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
    widest columns are narrowed, if necessary until their values are hard to read.
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


STYLES: Final = {
    "completed": "green",
    "running": "cyan",
    "assigned": "cyan",
    "dispatching": "cyan",
    "queued": "yellow",
    "blocked": "magenta",
    "retrying": "yellow",
    "suspended": "cyan",
    "failed": "red",
    "canceled": "dim",
    "skipped": "dim",
    "aborted": "dim red",
    "rejected": "red",
    "canceling": "dim cyan",
    "timed_out": "red",
    "idle": "green",
    "busy": "cyan",
    "offline": "red",
    "unhealthy": "yellow",
    "probation": "yellow",
    "draining": "yellow",
    "disabled": "dim",
    "pending_approval": "magenta",
    "ok": "green",
    "note": "yellow",
    "problem": "red",
}

# Values in these columns never wrap, however narrow the terminal is.
NEVER_WRAPPED: Final = frozenset(
    {"id", "state", "priority", "attempt", "created", "jobs", "started", "finished",
     "slots", "duration", "age", "at", "from", "to", "expires", "last used", "role", "kind"}
)  # fmt: skip
# Where room is short, values in these columns end in an ellipsis; those in others are folded.
CUT: Final = frozenset({"reason", "command", "worker", "expected", "progress"})
# How narrow columns become before others are left out.
MIN_WIDTHS: Final = {"name": 16, "command": 16, "reason": 20, "workflow": 16}
MIN_OF_OTHERS: Final = 12
PIPE_WIDTH: Final = 10_000

_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


class Layout(NamedTuple):
    """What a table leaves out or shortens in a narrow terminal."""

    spare: Sequence[str] = ()  # columns that are left out, the first one first
    cut: Collection[str] = CUT  # columns whose values are cut


ALL_COLUMNS: Final = Layout()
WHOLE: Final = Layout(cut=())  # every value is shown to its end


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    empty: str,
    layout: Layout = ALL_COLUMNS,
) -> None:
    """Prints rows, or `empty` if there are none.

    Columns without any value are left out to save room. If all column names are empty, there is
    no header.
    """
    if not rows:
        if empty:
            say(empty, DIM)
        return
    from rich.console import Console

    from windlass.cli.output.consoles import console

    # A program that reads a pipe needs whole values more than narrow lines.
    shown = console if console.is_terminal else Console(width=PIPE_WIDTH)
    shown.print(make_table(columns, rows, shown.width, layout))


def print_rows(
    found: object,
    json: bool,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    empty: str,
    layout: Layout = ALL_COLUMNS,
) -> None:
    """Prints what was found as JSON if that was asked for, else as a table."""
    if json:
        print_json(found)
    else:
        print_table(columns, rows, empty, layout)


def make_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    room: int,
    layout: Layout = ALL_COLUMNS,
) -> "Table":
    """Returns a table without the columns that have no values, and with everything escaped."""
    from rich.table import Table

    cells = [[_cell(value) for value in row] for row in rows]
    used = [n for n in range(len(columns)) if any(row[n] for row in cells)]
    widths = fit([_column(n, columns[n], cells) for n in used], room, [
        str(columns.index(name)) for name in layout.spare if name in columns
    ])  # fmt: skip
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    shown = [n for n in used if str(n) in widths]
    for n in shown:
        table.add_column(
            columns[n], width=widths[str(n)], overflow="fold", no_wrap=columns[n] in NEVER_WRAPPED
        )
    for row in cells:
        table.add_row(*(_fitted(row[n], columns[n] in layout.cut) for n in shown))
    return table


def _column(n: int, name: str, cells: Sequence[Sequence[str]]) -> Column:
    """Describes a column by its number: names need not be unique."""
    from rich.cells import cell_len

    width = max(cell_len(name), *(cell_len(row[n]) for row in cells))
    if name in NEVER_WRAPPED:
        return Column(str(n), width, width, narrows=False)
    return Column(str(n), width, min(width, MIN_WIDTHS.get(name, MIN_OF_OTHERS)))


def _fitted(cell: str, cut: bool) -> "Text":
    """Returns a cell; one that may be `cut` ends in an ellipsis where it does not fit."""
    from rich.text import Text

    text = Text(cell, style=STYLES.get(cell, ""))
    if cut:
        text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _cell(value: object) -> str:
    """Shows times to the second: a table has to fit, and JSON has the rest."""
    text = "" if value is None else escape_line(str(value))
    if moment := _MOMENT.fullmatch(text):
        return f"{moment[1]} {moment[2]}Z"
    return text
