"""Where the engine's time goes on SQLite: µs a job by function, and a tree.

    python -m benchmarks.profile_engine [stages | own | lines | tree | calls | statements]

`stages` times the functions that work on a whole batch, which is the most exact. `own` and
`lines` sample by a timer; `tree` is pyinstrument's and `calls` cProfile's: both make small
functions look dearer than they are. `statements` lists the SQL. The first line is the time
without any of them; `--shm` leaves out the disk.
"""

import argparse
import cProfile
import pstats
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pyinstrument
import uvloop

from benchmarks import drive, report
from benchmarks.measure import Lap
from benchmarks.stages import Stages
from benchmarks.stores import open_sqlite, sqlite_writer
from windlass.clock import RealClock
from windlass.domain.job.job import JobSpec

HOW = ("stages", "own", "lines", "tree", "calls", "statements")
PERIOD = 0.0005

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


class Sampler:
    """Looks every half millisecond where Python is; what C does counts for its caller.

    Python looks up from its work at calls and at the end of loops, so what goes on in the
    middle of a line counts for the next function that is entered.
    """

    def __init__(self) -> None:
        self.places: Counter[tuple[str, str, int]] = Counter()
        self.samples = 0

    def switch(self, on: bool) -> None:
        signal.signal(signal.SIGALRM, self._look if on else signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, PERIOD if on else 0, PERIOD if on else 0)

    def _look(self, _: int, frame: FrameType | None) -> None:
        self.samples += 1
        if frame is not None:
            code = frame.f_code
            where = "/".join(Path(code.co_filename).parts[-2:])
            self.places[where, code.co_name, frame.f_lineno] += 1


def _by_place(path: Path, batches: Batches, most: int, lines: bool) -> None:
    sampler = Sampler()
    lap = uvloop.run(_cycle(path, batches, sampler.switch))
    each = lap.cpu_us
    print(f"{each:.1f} µs of CPU a job while sampled, own time:")
    found: Counter[str] = Counter()
    for (where, function, line), count in sampler.places.items():
        found[f"{where}:{line}  {function}" if lines else f"{where}  {function}"] += count
    for place, count in found.most_common(most):
        print(f"{count / sampler.samples * each:8.2f}  {place}")


async def _by_stage(folder: Path, batches: Batches, most: int) -> None:
    stages = Stages()
    stages.watch(set())
    await _cycle(folder / "calls.db", batches[:20], lambda _: None)
    often = stages.called_often(20)
    stages.restore()
    stages.watch(often)

    def begin(on: bool) -> None:
        if on:
            stages.own.clear()

    lap = await _cycle(folder / "stages.db", batches, begin)
    found = stages.own.most_common(most)
    stages.restore()
    print(f"{lap.cpu_us:.1f} µs of CPU a job while watched, own time by stage:")
    for name, nanoseconds in found:
        print(f"{nanoseconds / 1000 / lap.jobs:8.2f}  {name}")


def _by_tree(path: Path, batches: Batches) -> None:
    profiler = pyinstrument.Profiler(interval=0.0005, async_mode="disabled")
    uvloop.run(_cycle(path, batches, lambda on: profiler.start() if on else profiler.stop()))
    print(profiler.output_text(unicode=True, show_all=True))


def _by_call(path: Path, batches: Batches, most: int) -> None:
    profile = cProfile.Profile()
    lap = uvloop.run(
        _cycle(path, batches, lambda on: profile.enable() if on else profile.disable())
    )
    stats = pstats.Stats(profile).get_stats_profile().func_profiles
    found = sorted(stats.items(), key=lambda item: -item[1].tottime)
    print(f"with cProfile {lap.seconds / lap.jobs * 1e6:.1f} µs a job:")
    print(f"{'total µs':>9} {'own µs':>7} {'calls':>9}  function")
    for name, one in found[:most]:
        total, own = (spent / lap.jobs * 1e6 for spent in (one.cumtime, one.tottime))
        where = f"{'/'.join(Path(one.file_name).parts[-2:])}:{one.line_number}"
        print(f"{total:9.2f} {own:7.2f} {one.ncalls!s:>9}  {name}  {where}")


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
    parser.add_argument("how", nargs="?", choices=HOW, default="stages")
    parser.add_argument("--most", type=int, default=45, help="lines of the table")
    parser.add_argument("--shm", action="store_true", help="the file in memory: no disk")
    given = parser.parse_args()
    batches = [drive.specs(given.batch, first) for first in range(0, given.jobs, given.batch)]
    report.RESULTS.mkdir(exist_ok=True)
    place = Path("/dev/shm") if given.shm else report.RESULTS
    with tempfile.TemporaryDirectory(dir=place) as folder:
        _plain(Path(folder) / "plain.db", batches)
        path = Path(folder) / "profiled.db"
        if given.how in {"own", "lines"}:
            _by_place(path, batches, given.most, given.how == "lines")
        elif given.how == "stages":
            uvloop.run(_by_stage(Path(folder), batches, given.most))
        elif given.how == "tree":
            _by_tree(path, batches)
        elif given.how == "statements":
            uvloop.run(_by_statement(path, batches))
        else:
            _by_call(path, batches, given.most)


if __name__ == "__main__":
    main()
