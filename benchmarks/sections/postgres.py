"""PostgreSQL: the engine in two processes beside *same rows*, *bare* and pgqueuer.

Jobs stand in the queue before the clock starts, as in the comparison of peers: the time is
that of claiming and completing them, in batches of 500, durably. Every round works on a
fresh copy of the same filled database. CPU is that of the processes and the server together.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvloop

from benchmarks import pg_process
from benchmarks.fill import Group, plain_shape
from benchmarks.measure import Lap, Laps, interleave
from benchmarks.options import Options
from benchmarks.peers import pgqueuer_peer
from benchmarks.raw import postgres_bare
from benchmarks.raw.compare import expect_equal_databases
from benchmarks.report import Row, rate_row
from benchmarks.sections.server_cpu import postmaster, server_cpu_seconds
from benchmarks.stores import prepare_postgres
from tests.support.postgres import PostgresServer, start_postgres

NAME = "postgres"
BATCH = 500
PROCESSES = 2
OF_SAME_ROWS = 0.60
OF_PGQUEUER = 1.5
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB"}


def run(options: Options) -> list[Row]:
    """Compare rows first, then rates."""
    server = start_postgres(durable=True, settings=SETTINGS)
    try:
        expect_same_rows(server)
        return _compare(server, options)
    finally:
        server.stop()


class Copies:
    """Fresh copies of one filled database."""

    def __init__(self, server: PostgresServer, jobs: int) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._filled = server.create_database()
        uvloop.run(prepare_postgres(self._filled, [Group(jobs, [plain_shape()])]))
        uvloop.run(postgres_bare.fill(self._filled, jobs))

    @contextmanager
    def copy(self) -> Iterator[str]:
        name = f"round_{next(self._numbers)}"
        source = self._filled.rpartition("/")[2]
        self._server.execute(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY file_copy")
        yield self._server.dsn(name)
        self._server.drop_database(self._server.dsn(name))


def _compare(server: PostgresServer, options: Options) -> list[Row]:
    jobs = options.pick(50_000, 20_000)
    copies = Copies(server, jobs)
    scratch = server.create_database()
    parent = uvloop.run(postmaster(scratch))

    def drain(kind: str, overlap: int) -> Callable[[], Lap]:
        def lap() -> Lap:
            with copies.copy() as dsn:
                before = server_cpu_seconds(parent)
                found = pg_process.run(kind, dsn, BATCH, PROCESSES, overlap)
                spent = server_cpu_seconds(parent) - before
            if found.jobs != jobs:
                raise RuntimeError(f"{kind} did {found.jobs} of {jobs} jobs")
            return found._replace(cpu_seconds=found.cpu_seconds + spent)

        return lap

    def pgqueuer() -> Lap:
        rate = pgqueuer_peer.run(scratch, jobs, BATCH, PROCESSES)
        return Lap(jobs, jobs / rate)

    laps = interleave(
        options.pick(4, 2),
        {
            "bare": drain("bare", 1),
            "same rows": drain("rows", 1),
            "engine": drain("engine", 1),
            "same rows, 2 at once": drain("rows", 2),
            "engine, 2 at once": drain("engine", 2),
            "pgqueuer": pgqueuer,
        },
        warm_up=False,
    )
    return _rows(laps)


def _rows(laps: dict[str, Laps]) -> list[Row]:
    beside = [
        ("bare", "", None),
        ("same rows", "bare", None),
        ("same rows, 2 at once", "bare", None),
        ("pgqueuer", "", None),
        ("engine", "same rows", OF_SAME_ROWS),
        ("engine", "pgqueuer", OF_PGQUEUER),
        ("engine, 2 at once", "same rows, 2 at once", OF_SAME_ROWS),
        ("engine, 2 at once", "pgqueuer", OF_PGQUEUER),
    ]
    section = f"{NAME}, 2 × {BATCH}"
    return [
        rate_row(section, name, laps[name], laps.get(other), other, target)
        for name, other, target in beside
    ]


def expect_same_rows(server: PostgresServer) -> None:
    """One process of each kind leaves the same rows behind."""
    copies = Copies(server, 5 * BATCH)
    with copies.copy() as engine, copies.copy() as rows:
        pg_process.run("engine", engine, BATCH, 1, 1)
        pg_process.run("rows", rows, BATCH, 1, 1)
        uvloop.run(expect_equal_databases(engine, rows))
