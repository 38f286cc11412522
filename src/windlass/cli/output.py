"""What people read and programs parse: tables, JSON, errors, exit codes."""

import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import msgspec
from rich.console import Console
from rich.table import Table

from windlass.domain.errors import InvalidInput, NotFound, Unreachable, WindlassError

# Exit codes, as the reference documents them; `run` exits with the job's own.
OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
NOT_FOUND: Final = 4
REFUSED: Final = 5

STYLES: Final = {
    "completed": "green",
    "running": "cyan",
    "assigned": "cyan",
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
}

console = Console()
errors = Console(stderr=True)


def say(text: object) -> None:
    """One plain line, for people and for scripts."""
    sys.stdout.write(f"{text}\n")


def print_json(value: Any) -> None:
    """One JSON document, for programs."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Rows for a person; `empty` is said when there are none."""
    if not rows:
        console.print(empty, style="dim")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
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
