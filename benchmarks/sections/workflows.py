"""Workflows on SQLite: a layered graph beside independent jobs, and stopping 100,000 jobs.

The graph has layers of 1,000 jobs, each of which waits for 10 of the layer before: of
100,000 jobs and a million edges. Bare SQL writes the same in the same rounds.
"""

from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks import drive
from benchmarks.measure import Lap, Laps, Watch, interleave
from benchmarks.options import Options
from benchmarks.raw import sqlite_flows
from benchmarks.report import Row, rate_row
from benchmarks.stores import open_sqlite
from windlass.clock import RealClock
from windlass.domain.job.job import JobSpec
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import WorkflowSpec

NAME = "workflows"
WIDTH = 1_000
FAN = 10
BATCH = 100
SUBMIT_TARGET = 1 / 4
RUN_TARGET = 1 / 2
MAX_SECONDS = 2.0


def run(options: Options) -> list[Row]:
    """Submit, run through, cancel, abort."""
    jobs = options.pick(100_000, 10_000)
    rounds = options.pick(3, 1)
    needs = layers(jobs)
    graph = specs_of(needs)
    bodies = [drive.spec_bytes(n) for n in range(jobs)]
    fresh = _Fresh(options.folder)
    submits, runs = _Split(fresh, drive.specs(jobs)), _Split(fresh, graph, workflow=True)
    laps = interleave(
        rounds,
        {
            "raw": lambda: sqlite_flows.submit(fresh(), bodies, [()] * jobs),
            "raw graph": lambda: sqlite_flows.submit(fresh(), bodies, needs),
            "submit": submits.first,
            "submit graph": runs.first,
            "run": submits.second,
            "run graph": runs.second,
            "raw cancel": lambda: sqlite_flows.cancel(fresh(), bodies),
            "cancel": lambda: uvloop.run(_cancel(fresh(), drive.specs(jobs))),
            "cancel graph": lambda: uvloop.run(_cancel(fresh(), graph)),
            "abort": lambda: uvloop.run(_abort(fresh(), jobs)),
        },
        warm_up=False,
    )
    shown = f"{jobs:,} jobs"
    return [
        rate_row(NAME, f"bare SQL: submit {shown}", laps["raw"]),
        rate_row(NAME, "bare SQL: submit the graph", laps["raw graph"], laps["raw"], "bare"),
        rate_row(NAME, f"submit {shown}", laps["submit"], laps["raw"], "bare SQL"),
        rate_row(NAME, "submit the graph", laps["submit graph"], laps["submit"],
                 "independent", SUBMIT_TARGET),
        rate_row(NAME, f"run {shown} in batches of {BATCH}", laps["run"]),
        rate_row(NAME, "run the graph", laps["run graph"], laps["run"], "independent",
                 RUN_TARGET),
        rate_row(NAME, f"bare SQL: cancel {shown}", laps["raw cancel"]),
        _time_row(f"cancel {shown}", laps["cancel"]),
        _time_row("cancel the graph", laps["cancel graph"]),
        _time_row(f"abort {shown} behind one failure", laps["abort"]),
    ]  # fmt: skip


def layers(jobs: int) -> list[Sequence[int]]:
    """For each job the places of those it waits for: ten of the layer before."""
    return [
        [(number // WIDTH - 1) * WIDTH + (number + step * 7) % WIDTH for step in range(FAN)]
        if number >= WIDTH
        else ()
        for number in range(jobs)
    ]


def specs_of(needs: Sequence[Sequence[int]]) -> list[JobSpec]:
    """The same as jobs with names."""
    return [
        JobSpec(
            task=drive.TASK, args={"n": n}, name=f"j{n}", after=tuple(f"j{other}" for other in its)
        )
        for n, its in enumerate(needs)
    ]


class _Fresh:
    """A new file each time, under one name: one that is gone does not fill the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, name: str = "flow") -> Path:
        for old in self._folder.glob(f"{name}.db*"):
            old.unlink()
        return self.path(name)

    def path(self, name: str) -> Path:
        """The file that was made last."""
        return self._folder / f"{name}.db"


class _Split:
    """Submitting, and running through what was submitted: two laps of one file."""

    def __init__(self, fresh: _Fresh, jobs: Sequence[JobSpec], workflow: bool = False) -> None:
        self._fresh = fresh
        self._name = "graph" if workflow else "single"
        self._jobs = jobs
        self._workflow = WorkflowSpec(name="bench") if workflow else None

    def first(self) -> Lap:
        """Submit to a new file."""
        return uvloop.run(self._submit(self._fresh(self._name)))

    def second(self) -> Lap:
        """Run what the first lap has submitted."""
        return uvloop.run(self._run(self._fresh.path(self._name)))

    async def _submit(self, path: Path) -> Lap:
        async with open_sqlite(path, RealClock()) as engine:
            await engine.submit(drive.specs(1))
            watch = Watch()
            await engine.submit(self._jobs, self._workflow)
            return watch.lap(len(self._jobs))

    async def _run(self, path: Path) -> Lap:
        async with open_sqlite(path, RealClock()) as engine:
            return await run_all(engine, len(self._jobs) + 1)


async def run_all(engine: Engine, jobs: int) -> Lap:
    """Run the jobs that are there to their ends, so many."""
    worker = await drive.BenchWorker.enrol(engine)
    watch = Watch()
    ran = await worker.drain(BATCH)
    if ran != jobs:
        raise RuntimeError(f"expected all {jobs} jobs to run, got {ran}")
    return watch.lap(ran)


async def cancel(engine: Engine, jobs: Sequence[JobSpec]) -> Lap:
    """Cancel a workflow of these jobs; their submit is not timed."""
    made = await engine.submit(jobs, WorkflowSpec(name="bench"))
    watch = Watch()
    done = await engine.workflows.cancel(made.known_workflow)
    lap = watch.lap(len(jobs))
    if done.state != "canceled":
        raise RuntimeError(f"expected the workflow to be canceled, it is {done.state}")
    return lap


async def abort(engine: Engine, jobs: int) -> Lap:
    """Abort so many jobs that wait for one; their submit is not timed."""
    first = JobSpec(task=drive.TASK, args={"n": -1}, name="first")
    rest = [JobSpec(task=drive.TASK, args={"n": n}, after=("first",)) for n in range(jobs)]
    made = await engine.submit([first, *rest], WorkflowSpec(name="bench"))
    watch = Watch()
    await engine.jobs.cancel([made.ids[0]])
    return watch.lap(jobs)


async def _cancel(path: Path, jobs: Sequence[JobSpec]) -> Lap:
    async with open_sqlite(path, RealClock()) as engine:
        return await cancel(engine, jobs)


async def _abort(path: Path, jobs: int) -> Lap:
    async with open_sqlite(path, RealClock()) as engine:
        return await abort(engine, jobs)


def _time_row(name: str, laps: Laps) -> Row:
    """Seconds of the engine's own time: what this process computed, not what the disk took."""
    times = [lap.cpu_seconds for lap in laps.laps]
    wall = min(lap.seconds for lap in laps.laps)
    return Row(
        section=NAME,
        name=f"{name} (with the disk {wall:.2f} s)",
        value=min(times),
        unit="s",
        target=f"< {MAX_SECONDS:.0f} s",
        met=min(times) < MAX_SECONDS,
        samples=[round(each, 3) for each in times],
    )
