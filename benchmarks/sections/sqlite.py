"""SQLite: the engine in-process beside *same rows* and *bare*, in batches of 100."""

from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks import drive
from benchmarks.measure import Lap, interleave
from benchmarks.options import Options
from benchmarks.raw import sqlite_bare, sqlite_rows
from benchmarks.raw.compare import expect_equal
from benchmarks.report import Row, rate_row
from benchmarks.stores import StillClock, open_sqlite
from windlass.clock import RealClock
from windlass.domain.job.job import JobSpec
from windlass.ports.clock import Clock

NAME = "sqlite"
BATCH = 100
TARGET = 0.60


def run(options: Options) -> list[Row]:
    """Compare rows first, then rates; without the disk as well, where commits cost little."""
    expect_same_rows(options.folder)
    rows = _compare(options, options.folder, NAME, TARGET)
    with options.no_disk() as folder:
        return rows + _compare(options, folder, f"{NAME}, no disk", None)


def _compare(options: Options, folder: Path, section: str, target: float | None) -> list[Row]:
    jobs = options.pick(20_000, 5_000)
    batches, bodies = _batches(jobs), _bodies(jobs)

    def fresh() -> Path:
        """The same name each time: a file that is gone does not fill the disk."""
        for old in folder.glob("round.db*"):
            old.unlink()
        return folder / "round.db"

    laps = interleave(
        options.pick(7, 3),
        {
            "bare": lambda: sqlite_bare.run(fresh(), jobs, BATCH),
            "same rows": lambda: _run_rows(fresh(), bodies, RealClock()),
            "engine": lambda: uvloop.run(_run_engine(fresh(), batches, RealClock())),
        },
    )
    return [
        rate_row(section, "bare", laps["bare"]),
        rate_row(section, "same rows", laps["same rows"], laps["bare"], "bare"),
        rate_row(section, "engine", laps["engine"], laps["same rows"], "same rows", target),
    ]


def _batches(jobs: int) -> list[list[JobSpec]]:
    return [drive.specs(BATCH, first) for first in range(0, jobs, BATCH)]


def _bodies(jobs: int) -> list[list[bytes]]:
    return [
        [drive.spec_bytes(n) for n in range(first, first + BATCH)]
        for first in range(0, jobs, BATCH)
    ]


async def _prepare(path: Path, clock: Clock) -> None:
    """A store that knows the worker and the shape, and has warmed up on one job."""
    async with open_sqlite(path, clock) as engine:
        worker = await drive.BenchWorker.enrol(engine)
        await drive.cycle(engine, worker, [drive.specs(1)])


async def _run_engine(path: Path, batches: Sequence[Sequence[JobSpec]], clock: Clock) -> Lap:
    async with open_sqlite(path, clock) as engine:
        worker = await drive.BenchWorker.enrol(engine)
        await drive.cycle(engine, worker, [drive.specs(1)])
        return await drive.cycle(engine, worker, batches)


def _run_rows(path: Path, bodies: Sequence[Sequence[bytes]], clock: Clock) -> Lap:
    uvloop.run(_prepare(path, clock))
    return sqlite_rows.run(path, bodies, clock)


def expect_same_rows(folder: Path) -> None:
    """Both loops leave the same rows behind, to the last column."""
    clock = StillClock()
    engine, rows = folder / "engine.db", folder / "rows.db"
    uvloop.run(_run_engine(engine, _batches(5 * BATCH), clock))
    _run_rows(rows, _bodies(5 * BATCH), clock)
    expect_equal(engine, rows)
