"""Workflows on PostgreSQL: the same graph as on SQLite, smaller, beside bare SQL.

Each lap has a fresh copy of an empty database. CPU is that of this process alone: the
server's shows in the time by the clock.
"""

import itertools
from collections.abc import Awaitable, Callable, Sequence

import uvloop

from benchmarks import drive
from benchmarks.measure import Lap, Laps, Watch, interleave
from benchmarks.options import Options
from benchmarks.raw import postgres_flows
from benchmarks.report import Row, rate_row
from benchmarks.sections.postgres import SETTINGS
from benchmarks.sections.workflows import BATCH, abort, cancel, layers, run_all, specs_of
from benchmarks.stores import open_postgres, prepare_postgres
from tests.support.postgres import PostgresServer, start_postgres
from windlass.domain.job.job import JobSpec
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import WorkflowSpec

NAME = "workflows-postgres"


def run(options: Options) -> list[Row]:
    """Submit, run through, cancel, abort."""
    server = start_postgres(durable=True, settings=SETTINGS)
    try:
        return _compare(_Databases(server), options)
    finally:
        server.stop()


class _Databases:
    """Copies of a database with tables and no rows."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._empty = server.create_database()
        uvloop.run(prepare_postgres(self._empty, []))

    def fresh(self, use: Callable[[str], Awaitable[Lap]]) -> Lap:
        """A lap on a copy that is dropped afterwards."""
        name = f"flows_{next(self._numbers)}"
        source = self._empty.rpartition("/")[2]
        self._server.execute(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY file_copy")
        dsn = self._server.dsn(name)
        try:
            return uvloop.run(_await(use, dsn))
        finally:
            self._server.drop_database(dsn)

    def engine(self, use: Callable[[Engine], Awaitable[Lap]]) -> Lap:
        """The same with an engine on it."""

        async def lap(dsn: str) -> Lap:
            async with open_postgres(dsn) as engine:
                return await use(engine)

        return self.fresh(lap)


async def _await(use: Callable[[str], Awaitable[Lap]], dsn: str) -> Lap:
    return await use(dsn)


def _compare(databases: _Databases, options: Options) -> list[Row]:
    jobs, stopped = options.pick(20_000, 5_000), options.pick(100_000, 10_000)
    needs = layers(jobs)
    graph, plain = specs_of(needs), drive.specs(jobs)
    bodies = [drive.spec_bytes(n) for n in range(stopped)]
    engine, fresh = databases.engine, databases.fresh
    alone: list[Sequence[int]] = [()] * jobs
    laps = interleave(
        options.pick(2, 1),
        {
            "raw": lambda: fresh(lambda dsn: postgres_flows.submit(dsn, bodies[:jobs], alone)),
            "raw graph": lambda: fresh(
                lambda dsn: postgres_flows.submit(dsn, bodies[:jobs], needs)
            ),
            "submit": lambda: engine(lambda e: _submit(e, plain, None)),
            "submit graph": lambda: engine(lambda e: _submit(e, graph, WorkflowSpec(name="b"))),
            "run": lambda: engine(lambda e: _run(e, plain, None)),
            "run graph": lambda: engine(lambda e: _run(e, graph, WorkflowSpec(name="b"))),
            "raw cancel": lambda: fresh(lambda dsn: postgres_flows.cancel(dsn, bodies)),
            "cancel": lambda: engine(lambda e: cancel(e, drive.specs(stopped))),
            "abort": lambda: engine(lambda e: abort(e, stopped)),
        },
        warm_up=False,
    )
    shown, many = f"{jobs:,} jobs", f"{stopped:,} jobs"
    return [
        rate_row(NAME, f"bare SQL: submit {shown}", laps["raw"]),
        rate_row(NAME, "bare SQL: submit the graph", laps["raw graph"], laps["raw"], "bare"),
        rate_row(NAME, f"submit {shown}", laps["submit"], laps["raw"], "bare SQL"),
        rate_row(NAME, "submit the graph", laps["submit graph"], laps["submit"], "independent"),
        rate_row(NAME, f"run {shown} in batches of {BATCH}", laps["run"]),
        rate_row(NAME, "run the graph", laps["run graph"], laps["run"], "independent"),
        rate_row(NAME, f"bare SQL: cancel {many}", laps["raw cancel"]),
        rate_row(NAME, f"cancel {many}", laps["cancel"], laps["raw cancel"], "bare SQL"),
        rate_row(NAME, f"abort {many} behind one failure", laps["abort"], laps["raw cancel"],
                 "bare SQL"),
        *(_cpu_row(f"{name} {many}", laps[name]) for name in ("cancel", "abort")),
    ]  # fmt: skip


async def _submit(engine: Engine, jobs: Sequence[JobSpec], workflow: WorkflowSpec | None) -> Lap:
    await engine.submit(drive.specs(1))
    watch = Watch()
    await engine.submit(jobs, workflow)
    return watch.lap(len(jobs))


async def _run(engine: Engine, jobs: Sequence[JobSpec], workflow: WorkflowSpec | None) -> Lap:
    await engine.submit(jobs, workflow)
    return await run_all(engine, len(jobs))


def _cpu_row(name: str, laps: Laps) -> Row:
    times = [lap.cpu_seconds for lap in laps.laps]
    return Row(
        section=NAME, name=f"{name}: CPU of the engine", value=min(times), unit="s",
        samples=[round(each, 3) for each in times],
    )  # fmt: skip
