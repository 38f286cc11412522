"""Tables for people: columns that fit the terminal, states in colour."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from windlass.cli.output.escaping import escape_line
from windlass.cli.output.text import DIM, say

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

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
    "draining": "yellow",
    "disabled": "dim",
    "pending_approval": "magenta",
    "ok": "green",
    "note": "yellow",
    "problem": "red",
}

# Values in these columns never wrap, however narrow the terminal is.
NEVER_WRAPPED: Final = frozenset(
    {"id", "state", "queue", "priority", "attempt", "created", "jobs", "started", "finished",
     "slots", "duration", "age"}
)  # fmt: skip
PIPE_WIDTH: Final = 10_000

_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
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
    (console if console.is_terminal else Console(width=PIPE_WIDTH)).print(make_table(columns, rows))


def make_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> "Table":
    """Returns a table without the columns that have no values, and with everything escaped."""
    from rich.table import Table

    cells = [[_cell(value) for value in row] for row in rows]
    used = [n for n in range(len(columns)) if any(row[n] for row in cells)]
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for n in used:
        table.add_column(columns[n], overflow="fold", no_wrap=columns[n] in NEVER_WRAPPED)
    for row in cells:
        table.add_row(*(_fitted(columns[n], row[n]) for n in used))
    return table


def _fitted(column: str, cell: str) -> "Text":
    """Cuts reasons to the room that is left, so that each row stays on one line."""
    from rich.text import Text

    text = Text(cell, style=STYLES.get(cell, ""))
    if column in ("reason", "command"):
        text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _cell(value: object) -> str:
    """Shows times to the second: a table has to fit, and JSON has the rest."""
    text = "" if value is None else escape_line(str(value))
    if moment := _MOMENT.fullmatch(text):
        return f"{moment[1]} {moment[2]}Z"
    return text
