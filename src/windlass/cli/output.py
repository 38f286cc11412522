"""What people read and programs parse: tables, JSON, errors, exit codes."""

import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final, NoReturn

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windlass.domain.values.errors import InvalidInput, NotFound, Unreachable, WindlassError
from windlass.wire.workers import Changed

Flag = Annotated[bool, Parameter(show_default=False)]
Json = Annotated[
    bool, Parameter(name="--json", show_default=False, help="Print JSON for programs.")
]

# Exit codes; `run` exits with the job's own.
OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
NOT_FOUND: Final = 4
REFUSED: Final = 5

# What the reference says of them.
EXIT_CODES: Final = {
    OK: "done",
    FAILED: "`verify` found violations, `doctor` found problems; `run`: the job failed",
    USAGE: "an argument, option or setting cannot be accepted; nothing was done",
    UNREACHABLE: "no server is known, none answers, or its certificate is not trusted",
    NOT_FOUND: "there is no such job, worker, …",
    REFUSED: "the server or the store refuses: not allowed, in conflict, busy, unavailable",
}

STYLES: Final = {
    "complete": "green",
    "completed": "green",
    "running": "cyan",
    "assigned": "cyan",
    "dispatching": "cyan",
    "queued": "yellow",
    "blocked": "magenta",
    "retrying": "yellow",
    "failed": "red",
    "canceled": "dim",
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

# Columns whose values stay on one line, however narrow the terminal is.
SHORT: Final = frozenset(
    {"id", "state", "queue", "prio", "attempt", "created", "jobs", "started", "finished", "slots"}
)
PIPE_WIDTH: Final = 10_000

# To the second: a table has to fit, and JSON has the rest.
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")

console = Console()
errors = Console(stderr=True)


def say(text: object) -> None:
    """One plain line, for people and for scripts."""
    sys.stdout.write(f"{text}\n")


def print_json(value: Any) -> None:
    """One JSON document, for programs."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_change(changed: Changed, json: bool) -> None:
    """Whether a command changed anything."""
    if json:
        print_json(changed)
    else:
        say("done" if changed.applied else "nothing to do")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Rows for a person; `empty` is said when there are none.

    Columns without a single value are left out: a terminal is narrow. Without names of
    columns there is no line for them.
    """
    if not rows:
        if empty:
            console.print(empty, style="dim")
        return
    cells = [[_cell(value) for value in row] for row in rows]
    used = [n for n in range(len(columns)) if any(row[n] for row in cells)]
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for n in used:
        table.add_column(columns[n], overflow="fold", no_wrap=columns[n] in SHORT)
    for row in cells:
        table.add_row(*(_fitted(columns[n], row[n]) for n in used))
    # Whatever reads a pipe can cope with long lines, and would miss what was cut off.
    (console if console.is_terminal else Console(width=PIPE_WIDTH)).print(table)


def _fitted(column: str, cell: str) -> Text:
    """One line for each row of a list: of reasons as much as there is room for."""
    text = Text.from_markup(cell)
    if column == "reason":
        text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if moment := _MOMENT.fullmatch(text):
        return f"{moment[1]} {moment[2]}Z"
    style = STYLES.get(text)
    return f"[{style}]{text}[/]" if style else text.replace("[", "\\[")


def fail(error: WindlassError) -> NoReturn:
    """Say what went wrong and leave with the fitting code."""
    errors.print(f"windlass: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(exit_code(error))


def exit_code(error: WindlassError) -> int:
    """The exit code of an error."""
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, Unreachable):
        return UNREACHABLE
    if isinstance(error, NotFound):
        return NOT_FOUND
    return REFUSED
