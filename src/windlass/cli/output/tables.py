"""Tables for people: columns that fit the terminal, states in colour."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from windlass.cli.output.escaping import escape_line
from windlass.cli.output.text import DIM, say

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from windlass.cli.output.column_widths import Column

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
    """What a table does where room is short."""

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


def make_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    room: int,
    layout: Layout = ALL_COLUMNS,
) -> "Table":
    """Returns a table without the columns that have no values, and with everything escaped."""
    from rich.table import Table

    from windlass.cli.output.column_widths import fit

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


def _column(n: int, name: str, cells: Sequence[Sequence[str]]) -> "Column":
    """Describes a column by its number: names need not be unique."""
    from rich.cells import cell_len

    from windlass.cli.output.column_widths import Column

    width = max(cell_len(name), *(cell_len(row[n]) for row in cells))
    if name in NEVER_WRAPPED:
        return Column(str(n), width, width, narrows=False)
    return Column(str(n), width, min(width, MIN_WIDTHS.get(name, MIN_OF_OTHERS)))


def _fitted(cell: str, cut: bool) -> "Text":
    """Cuts values that may be long to the room that is left, so that each row is one line."""
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
