"""Section: no-op Python functions, from a filled queue to the record of their ends.

Three pairs, each in rounds of its own: over HTTP beside dramatiq, straight on PostgreSQL
beside pgqueuer, embedded beside huey. Ours run plain functions where the peer does, and
async ones beside pgqueuer, whose jobs are async.
"""

import itertools
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.fleet import embedded, functions, over_http
from benchmarks.fleet.beside_store import direct_on_postgres, spec
from benchmarks.fleet.processes import server, worker
from benchmarks.measure import Lap, Laps, interleave
from benchmarks.options import Options
from benchmarks.peers import dramatiq_peer, huey_peer, pgqueuer_peer, redis_server
from benchmarks.peers.draining import measured
from benchmarks.report import Row, rate_row
from benchmarks.sections.postgres import SETTINGS
from tests.support.postgres import start_postgres

NAME = "no-op functions"
OF_DRAMATIQ = 1.3
OF_PGQUEUER = 1.0
OF_HUEY = 8.0
SLOTS = 500
BATCH = 500
PROCESSES = 2


def run(options: Options) -> list[Row]:
    return [*_over_http(options), *_direct(options), *_embedded(options)]


def _over_http(options: Options) -> list[Row]:
    jobs = options.pick(20_000, 1_000)
    calls = [functions.noop.job(n) for n in range(jobs)]
    folder = options.folder / "http"
    with ExitStack() as stack:
        running = stack.enter_context(server(folder))
        stack.enter_context(worker(running, "w1", SLOTS))
        submitting: list[Lap] = []
        contenders = {"HTTP, SQLite": _second(lambda: over_http.drain(running, calls), submitting)}
        missing = redis_server.missing()
        if missing:
            print(f"without dramatiq on Redis: {missing}")
        else:
            url = stack.enter_context(redis_server.redis_server(folder / "redis"))
            contenders["dramatiq, Redis"] = lambda: measured(dramatiq_peer.run(url, folder, jobs))
        laps = interleave(options.pick(5, 1), contenders)
    rows = _rows(laps, "HTTP, SQLite", "dramatiq, Redis", OF_DRAMATIQ)
    return [*rows, _submits("HTTP, SQLite", submitting)]


def _direct(options: Options) -> list[Row]:
    jobs = options.pick(50_000, 2_000)
    calls = [spec(functions.noop_async, n) for n in range(jobs)]
    folder = options.folder / "direct"
    postgres = start_postgres(durable=True, settings=SETTINGS)
    try:
        scratch = postgres.create_database()
        workers = direct_on_postgres(postgres.create_database(), folder, PROCESSES, SLOTS)
        submitting: list[Lap] = []
        with workers as ours:
            laps = interleave(
                options.pick(5, 1),
                {
                    "direct, PostgreSQL": _second(lambda: ours.drain(calls), submitting),
                    "pgqueuer": lambda: _pgqueuer(scratch, jobs),
                },
            )
    finally:
        postgres.stop()
    rows = _rows(laps, "direct, PostgreSQL", "pgqueuer", OF_PGQUEUER)
    return [*rows, _submits("direct, PostgreSQL", submitting)]


def _embedded(options: Options) -> list[Row]:
    jobs = options.pick(40_000, 1_000)
    calls = [functions.noop.job(n) for n in range(jobs)]
    few = jobs // 8  # enough for huey, which takes far longer
    folder = options.folder / "embedded"
    folder.mkdir()
    files = (folder / f"round-{number}.db" for number in itertools.count())
    submitting: list[Lap] = []
    laps = interleave(
        options.pick(5, 1),
        {
            "embedded, SQLite": _second(
                lambda: embedded.drain(next(files), calls, SLOTS), submitting
            ),
            "huey, SQLite": lambda: measured(huey_peer.run(str(folder / "huey.db"), folder, few)),
        },
    )
    rows = _rows(laps, "embedded, SQLite", "huey, SQLite", OF_HUEY)
    return [*rows, _submits("embedded, SQLite", submitting)]


def _second(drain: Callable[[], tuple[Lap, Lap]], submitting: list[Lap]) -> Callable[[], Lap]:
    """The lap of running the jobs; that of submitting them is put aside."""

    def run() -> Lap:
        submitted, drained = drain()
        submitting.append(submitted)
        # The CPU is that of the client alone, which says nothing here.
        return drained._replace(cpu_seconds=0.0)

    return run


def _pgqueuer(dsn: str, jobs: int) -> Lap:
    return Lap(jobs, jobs / pgqueuer_peer.run(dsn, jobs, BATCH, PROCESSES))


def _rows(laps: dict[str, Laps], ours: str, theirs: str, target: float) -> list[Row]:
    if theirs not in laps:
        return [rate_row(NAME, ours, laps[ours])]
    return [
        rate_row(NAME, theirs, laps[theirs]),
        rate_row(NAME, ours, laps[ours], laps[theirs], theirs, target),
    ]


def _submits(name: str, laps: list[Lap]) -> Row:
    found = Laps([lap._replace(cpu_seconds=0.0) for lap in laps])
    return rate_row(NAME, f"{name}, submitting", found)
