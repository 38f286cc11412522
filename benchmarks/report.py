"""What a benchmark found: rows of a table, printed for people and written as JSON."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.measure import Laps

RESULTS = Path(__file__).parent / "results"


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure. `ratio` compares it with another row of the same run, named by `beside`.

    `target` says what is asked of it and `met` whether it holds; a figure that only stands
    beside others has neither. `samples` are the rounds it was taken from.
    """

    section: str
    name: str
    value: float
    unit: str
    cpu_us: float | None = None
    ratio: float | None = None
    beside: str = ""
    target: str = ""
    met: bool | None = None
    samples: Sequence[float] = ()


def rate_row(
    section: str,
    name: str,
    laps: Laps,
    other: Laps | None = None,
    beside: str = "",
    target: float | None = None,
) -> Row:
    """Jobs per second, with the ratio to another contender of the same rounds."""
    ratio = None if other is None else laps.ratio(other)
    return Row(
        section=section,
        name=name,
        value=laps.rate,
        unit="jobs/s",
        cpu_us=laps.cpu_us or None,
        ratio=ratio,
        beside=beside,
        target="" if target is None else f"≥ {target:.2f}",
        met=None if target is None or ratio is None else ratio >= target,
        samples=laps.rates,
    )


HEADS = ("section", "figure", "value", "", "cpu µs/job", "ratio", "beside", "target", "met")
RIGHT = {2, 4, 5}


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    lines = [HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    text = []
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if column in RIGHT else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        text.append("  ".join(cells).rstrip())
        if number == 0:
            text.append("  ".join("-" * width for width in widths))
    return "\n".join(text)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.section,
        row.name,
        _figure(row.value),
        row.unit,
        "" if row.cpu_us is None else f"{row.cpu_us:.1f}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        row.beside,
        row.target,
        {None: "", True: "yes", False: "NO"}[row.met],
    )


def _figure(value: float) -> str:
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def write(rows: Sequence[Row], name: str) -> Path:
    """Write the rows, and what machine they hold for, below `results/`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    found = {
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "rows": [msgspec.to_builtins(row) for row in rows],
    }
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return path
