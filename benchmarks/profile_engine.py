"""Where the engine's time goes on SQLite: µs a job by function, and a tree.

    python -m benchmarks.profile_engine [own | total | tree | statements] [--jobs 40000]

`own` and `total` count calls with cProfile, which makes small Python functions look dearer
than they are; `tree` samples with pyinstrument, which does not; `statements` lists the SQL.
The first line is the time without any of them. `--shm` leaves the disk out.
"""

import argparse
import cProfile
import pstats
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pyinstrument
import uvloop

from benchmarks import drive, report
from benchmarks.measure import Lap
from benchmarks.stores import open_sqlite, sqlite_writer
from windlass.clock import RealClock
from windlass.domain.job import JobSpec

HOW = ("own", "total", "tree", "statements")

Batches = Sequence[Sequence[JobSpec]]


async def _cycle(path: Path, batches: Batches, around: Callable[[bool], object]) -> Lap:
    """One run of the engine; `around` is told when the part that counts begins and ends."""
    async with open_sqlite(path, RealClock()) as engine:
        worker = await drive.BenchWorker.enrol(engine)
        await drive.cycle(engine, worker, [drive.specs(1)])
        around(True)
        lap = await drive.cycle(engine, worker, batches)
        around(False)
        return lap


def _plain(path: Path, batches: Batches) -> None:
    lap = uvloop.run(_cycle(path, batches, lambda _: None))
    us = lap.seconds / lap.jobs * 1e6
    print(f"{lap.rate:,.0f} jobs/s: {us:.1f} µs a job, {lap.cpu_us:.1f} of them CPU\n")


def _by_function(path: Path, batches: Batches, order: str, most: int) -> None:
    profile = cProfile.Profile()
    lap = uvloop.run(
        _cycle(path, batches, lambda on: profile.enable() if on else profile.disable())
    )
    stats = pstats.Stats(profile).get_stats_profile().func_profiles
    column = "cumtime" if order == "total" else "tottime"
    found = sorted(stats.items(), key=lambda item: -getattr(item[1], column))
    print(f"with cProfile {lap.seconds / lap.jobs * 1e6:.1f} µs a job, of which by {order} time:")
    print(f"{'total µs':>9} {'own µs':>7} {'calls':>9}  function")
    for name, one in found[:most]:
        total, own = (spent / lap.jobs * 1e6 for spent in (one.cumtime, one.tottime))
        where = f"{'/'.join(Path(one.file_name).parts[-2:])}:{one.line_number}"
        print(f"{total:9.2f} {own:7.2f} {one.ncalls!s:>9}  {name}  {where}")


def _by_tree(path: Path, batches: Batches) -> None:
    profiler = pyinstrument.Profiler(interval=0.0002, async_mode="disabled")
    uvloop.run(_cycle(path, batches, lambda on: profiler.start() if on else profiler.stop()))
    print(profiler.output_text(unicode=True, show_all=True, timeline=False))


async def _by_statement(path: Path, batches: Batches) -> None:
    spent: Counter[str] = Counter()
    runs: Counter[str] = Counter()

    def note(event: dict[str, Any]) -> None:
        spent[event["sql"]] += event["nanoseconds"]
        runs[event["sql"]] += 1

    async with open_sqlite(path, RealClock()) as engine:
        worker = await drive.BenchWorker.enrol(engine)
        await drive.cycle(engine, worker, [drive.specs(1)])
        writer = sqlite_writer(engine)
        writer.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        lap = await drive.cycle(engine, worker, batches)
        writer.trace_v2(0, None)
    print(f"{sum(spent.values()) / 1000 / lap.jobs:.1f} µs a job in SQLite:")
    print(f"{'µs a job':>9} {'runs/batch':>10}  statement")
    for sql, nanoseconds in spent.most_common():
        text = " ".join(sql.split())
        print(
            f"{nanoseconds / 1000 / lap.jobs:9.2f} {runs[sql] / len(batches):10.2f}  {text[:110]}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="profile the engine on SQLite")
    parser.add_argument("--jobs", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("how", nargs="?", choices=HOW, default="own")
    parser.add_argument("--most", type=int, default=45, help="lines of the table")
    parser.add_argument("--shm", action="store_true", help="the file in memory: no disk")
    given = parser.parse_args()
    batches = [drive.specs(given.batch, first) for first in range(0, given.jobs, given.batch)]
    report.RESULTS.mkdir(exist_ok=True)
    place = Path("/dev/shm") if given.shm else report.RESULTS
    with tempfile.TemporaryDirectory(dir=place) as folder:
        _plain(Path(folder) / "plain.db", batches)
        path = Path(folder) / "profiled.db"
        if given.how == "tree":
            _by_tree(path, batches)
        elif given.how == "statements":
            uvloop.run(_by_statement(path, batches))
        else:
            _by_function(path, batches, given.how, given.most)


if __name__ == "__main__":
    main()
