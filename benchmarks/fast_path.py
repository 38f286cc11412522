"""What the fast path of PostgreSQL earns: two workers with it and two without, in turns.

Each pair has a database server of its own, so that the CPU time of its processes can be told
apart. `python -m benchmarks.fast_path [ROUNDS [JOBS]]` prints a line for each round: no-op async
functions from a filled queue to their recorded ends, and from a submit to the start of one.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import asyncpg

from benchmarks.fleet import functions
from benchmarks.fleet.beacon import Beacon
from benchmarks.fleet.beside_store import BesideStore, spec
from benchmarks.fleet.loop_thread import LoopThread
from benchmarks.fleet.processes import stopped_in_the_end, until
from benchmarks.sections.postgres import SETTINGS
from benchmarks.stores import prepare_postgres
from tests.support.postgres import start_postgres
from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.engine.engine import Engine
from windlass.store.postgres.store import PostgresStore

TICKS = os.sysconf("SC_CLK_TCK")
WORKERS = 2
SLOTS = 500
LATENCIES = 40
WITHOUT = "without-fast-path"


class Side(NamedTuple):
    """Two workers on a database, and whose CPU time counts."""

    beside: BesideStore
    workers: list[int]
    postmaster: int


class Figures(NamedTuple):
    """Of one round: seconds by the clock, µs of CPU a job, milliseconds."""

    seconds: float
    workers_us: float
    database_us: float
    latency_ms: float
    latency_cpu_us: float


def main(rounds: int, jobs: int) -> None:
    """Measures both sides in turns."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        beacon = stack.enter_context(Beacon(folder))
        sides = {
            name: stack.enter_context(_side(folder / name, name == "with"))
            for name in ("with", "without")
        }
        found: dict[str, list[Figures]] = {name: [] for name in sides}
        for number in range(rounds + 1):
            for name in list(sides)[:: -1 if number % 2 else 1]:
                figures = _measure(sides[name], beacon, jobs)
                print(number, name, *(f"{figure:.2f}" for figure in figures), flush=True)
                if number:  # the first is to warm up
                    found[name].append(figures)
    for number, field in enumerate(Figures._fields):
        pairs = zip(found["with"], found["without"], strict=True)
        ratio = median(without[number] / with_it[number] for with_it, without in pairs)
        print(f"{field}: without / with = {ratio:.2f}")


def _measure(side: Side, beacon: Beacon, jobs: int) -> Figures:
    calls = [spec(functions.noop_async, number) for number in range(jobs)]
    workers, database = _cpu(side.workers), _cpu([side.postmaster])
    _, drained = side.beside.drain(calls)
    workers, database = _cpu(side.workers) - workers, _cpu([side.postmaster]) - database
    before = _cpu([*side.workers, side.postmaster])
    submit = side.beside.submitter(functions.start_async)
    latency = median(beacon.latency(submit) for _ in range(LATENCIES))
    cpu = _cpu([*side.workers, side.postmaster]) - before
    return Figures(
        drained.seconds, workers / jobs * 1e6, database / jobs * 1e6, latency, cpu / LATENCIES * 1e6
    )


@contextmanager
def _side(folder: Path, fast: bool) -> Iterator[Side]:
    folder.mkdir()
    postgres = start_postgres(durable=True, settings=SETTINGS)
    with ExitStack() as stack:
        stack.callback(postgres.stop)
        dsn = postgres.create_database()
        runner = stack.enter_context(LoopThread())
        runner.run(prepare_postgres(dsn, []))
        workers = [
            stack.enter_context(_worker(folder / f"worker-{n}", dsn, f"worker-{n}", fast))
            for n in range(WORKERS)
        ]
        opened = AsyncExitStack()
        engine = runner.run(_engine(opened, dsn, fast))
        stack.callback(lambda: runner.run(opened.aclose()))
        watching = runner.run(asyncpg.connect(dsn))
        stack.callback(lambda: runner.run(watching.close()))
        backend = runner.run(watching.fetchval("SELECT pg_backend_pid()"))
        yield Side(BesideStore(runner, engine, watching), workers, _stat(backend)[1])


async def _engine(opened: AsyncExitStack, dsn: str, fast: bool) -> Engine:
    store = await PostgresStore.connect(dsn, "bench", fast_path=fast)
    opened.push_async_callback(store.close)
    engine = Engine(store, Config(), RealChance())
    opened.push_async_callback(engine.close)
    await engine.start()
    return engine


@contextmanager
def _worker(folder: Path, dsn: str, name: str, fast: bool) -> Iterator[int]:
    folder.mkdir()
    command = [sys.executable, "-m", "windlass"]
    if not fast:
        command = [sys.executable, "-m", "benchmarks.fast_path", WITHOUT]
    command += ["worker", "--store", dsn, "--blobs", f"file://{folder.parent / 'blobs'}"]
    command += ["--name", name, "--slots", str(SLOTS), "--state", str(folder / "state")]
    log = folder / "worker.log"
    with stopped_in_the_end(command, log, {"WINDLASS_ISOLATION": "process"}) as process:
        until(f"{name} to enrol", lambda: "enrolled" in log.read_text())
        yield process.pid


def _run_without() -> None:
    """Runs the command line in this process, with stores that have no fast path."""
    from windlass.cli.app import main as run

    setattr(PostgresStore, "fast_path", None)  # noqa: B010
    sys.argv = ["windlass", *sys.argv[2:]]
    run()


def _cpu(roots: list[int]) -> float:
    """Returns the seconds of CPU of these processes and all below them, also of ended ones."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                used, parent = _stat(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
            ticks[int(entry.name)] = used
            children.setdefault(parent, []).append(int(entry.name))
    total, rest = 0, list(roots)
    while rest:
        pid = rest.pop()
        total += ticks.get(pid, 0)
        rest += children.get(pid, [])
    return total / TICKS


def _stat(pid: int) -> tuple[int, int]:
    """Returns the ticks that a process and its ended children have used, and its parent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])), int(fields[1])


if __name__ == "__main__":
    if WITHOUT in sys.argv[1:2]:
        _run_without()
    else:
        numbers = [int(text) for text in sys.argv[1:]]
        main(*[*numbers, *(5, 20_000)[len(numbers) :]])
