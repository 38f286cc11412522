"""Section: submits one by one by one caller, beside what a request, a commit and a peer cost.

Over HTTP beside `GET /healthz` by the same client and dramatiq on Redis; embedded beside a loop
that commits one row on the same disk; straight on PostgreSQL beside pgqueuer, also in bulk and
there beside COPY of the same rows. Nobody runs the jobs. CPU is that of client and server.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

import windlass
from benchmarks.fleet import functions
from benchmarks.fleet.beside_store import spec
from benchmarks.fleet.processes import server
from benchmarks.fleet.usage import cpu_seconds
from benchmarks.measure import Lap, Laps, Watch, interleave
from benchmarks.options import Options
from benchmarks.peers import dramatiq_peer, redis_server
from benchmarks.peers.declared import declared_on
from benchmarks.report import Row, rate_row
from benchmarks.stores import open_postgres, prepare_postgres
from tests.support.postgres import start_postgres
from windlass.client.blocking.client import Client
from windlass.messages.system import Health
from windlass.store.sqlite.connection import open_writer

NAME = "submits"
OF_HEALTHZ = 0.7
OF_DRAMATIQ = 0.5
OF_BARE = 0.9
OF_PGQUEUER = 1.2
BULK_OF_PGQUEUER = 1.5
BULK_OF_COPY = 0.9
BULK = 1_000
NUMBERED = {"jobs": "id", "ready": "job", "events": "seq"}  # the tables of a submit
ENTRYPOINT = "noop"
BODY = b'{"task":"python","args":{"function":"benchmarks.fleet.functions:noop","args":[1]}}'


def run(options: Options) -> list[Row]:
    """Four comparisons, each in rounds of its own."""
    return [*_over_http(options), *_embedded(options), *_direct(options)]


def _over_http(options: Options) -> list[Row]:
    folder = options.folder / "http"
    times = options.pick(500, 50)
    with ExitStack() as stack:
        running = stack.enter_context(server(folder))
        client = stack.enter_context(running.client())
        served = functools.partial(cpu_seconds, running.pid)
        contenders = {
            "HTTP, SQLite": lambda: _laps(
                times, lambda n: client.submit(functions.noop, n), served
            ),
            "GET /healthz": lambda: _laps(times, lambda _: _ask(client), served),
        }
        missing = redis_server.missing()
        if missing:
            print(f"without dramatiq on Redis: {missing}")
        else:
            url = stack.enter_context(redis_server.redis_server(folder / "redis"))
            send = declared_on(dramatiq_peer.TASKS, url).noop.send
            contenders["dramatiq, Redis"] = lambda: _laps(times, send)
        laps = interleave(options.pick(9, 2), contenders)
    rows = _rows(laps, "HTTP, SQLite", {"GET /healthz": OF_HEALTHZ})
    if not missing:
        rows += _rows(laps, "HTTP, SQLite", {"dramatiq, Redis": OF_DRAMATIQ})
    return rows


def _ask(client: Client) -> object:
    return client.run(client.asynchronous.transport.call("GET", "/healthz", Health))


def _embedded(options: Options) -> list[Row]:
    folder = options.folder / "embedded"
    folder.mkdir()
    times = options.pick(1_000, 50)
    with ExitStack() as stack:
        client = stack.enter_context(windlass.Client.embedded(folder / "jobs.db", workers=0))
        laps = interleave(
            options.pick(9, 2),
            {
                "embedded, SQLite": lambda: _laps(
                    times, lambda n: client.submit(functions.noop, n)
                ),
                "bare loop, SQLite": _bare_loop(folder / "bare.db", times),
            },
        )
    return _rows(laps, "embedded, SQLite", {"bare loop, SQLite": OF_BARE})


def _bare_loop(path: Path, times: int) -> Callable[[], Lap]:
    connection = open_writer(path)
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state INTEGER, body BLOB)")

    def insert(_: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO jobs (state, body) VALUES (0, ?)", (BODY,))
        connection.execute("COMMIT")

    return lambda: _laps(times, insert)


def _direct(options: Options) -> list[Row]:
    times, calls = options.pick(500, 50), options.pick(20, 2)
    postgres = start_postgres(durable=True)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            opened = AsyncExitStack()
            dsn, theirs = postgres.create_database(), postgres.create_database()
            runner.run(prepare_postgres(dsn, []))
            engine = runner.run(opened.enter_async_context(open_postgres(dsn, "bench")))
            connection = runner.run(asyncpg.connect(theirs))
            queries = Queries(AsyncpgDriver(connection))
            runner.run(queries.install())

            async def submit(n: int) -> None:
                await engine.submit([spec(functions.noop, n)])

            async def enqueue(n: int) -> None:
                await queries.enqueue(ENTRYPOINT, b"%d" % n)

            async def submit_many(n: int) -> None:
                first = n * BULK
                await engine.submit([spec(functions.noop, first + i) for i in range(BULK)])

            async def enqueue_many(n: int) -> None:
                payloads: list[bytes | None] = [b"%d" % (n * BULK + i) for i in range(BULK)]
                await queries.enqueue([ENTRYPOINT] * BULK, payloads, [0] * BULK)

            copy = _CopyOfRows(runner.run(asyncpg.connect(dsn)))
            runner.run(submit_many(0))
            runner.run(copy.prepare())
            one = interleave(
                options.pick(9, 2),
                {
                    "direct, PostgreSQL": lambda: runner.run(_alone(times, submit)),
                    "pgqueuer": lambda: runner.run(_alone(times, enqueue)),
                },
            )
            many = interleave(
                options.pick(5, 2),
                {
                    "bulk, PostgreSQL": lambda: runner.run(_alone(calls, submit_many, BULK)),
                    "pgqueuer, bulk": lambda: runner.run(_alone(calls, enqueue_many, BULK)),
                    "COPY": lambda: runner.run(_alone(calls, copy.write, BULK)),
                },
            )
            runner.run(connection.close())
            runner.run(copy.close())
            runner.run(opened.aclose())
    finally:
        postgres.stop()
    rows = _rows(one, "direct, PostgreSQL", {"pgqueuer": OF_PGQUEUER})
    bulk = {"pgqueuer, bulk": BULK_OF_PGQUEUER, "COPY": BULK_OF_COPY}
    return [*rows, *_rows(many, "bulk, PostgreSQL", bulk)]


class _CopyOfRows:
    """Writes the rows of a bulk submit again, by COPY into tables that are made alike."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._added = 0

    async def prepare(self) -> None:
        """Reads the newest rows, and makes the tables."""
        execute = self._connection.execute
        await execute("SET search_path = windlass")
        for table, key in NUMBERED.items():
            found = await self._connection.fetch(
                f"SELECT * FROM {table} ORDER BY {key} DESC LIMIT {BULK}"
            )
            self._rows[table] = [dict(row) for row in reversed(found)]
            await execute(f"CREATE TABLE copied_{table} (LIKE {table} INCLUDING ALL)")

    async def write(self, _: int) -> None:
        """Copies them with the numbers that follow, in one transaction."""
        self._added += BULK
        async with self._connection.transaction():
            for table, rows in self._rows.items():
                key = NUMBERED[table]
                records = [tuple({**row, key: row[key] + self._added}.values()) for row in rows]
                await self._connection.copy_records_to_table(f"copied_{table}", records=records)

    async def close(self) -> None:
        await self._connection.close()


def _laps(
    times: int, call: Callable[[int], object], served: Callable[[], float] = lambda: 0.0
) -> Lap:
    """A lap of so many calls; `served` is the CPU time of the server so far."""
    watch, before = Watch(), served()
    for n in range(times):
        call(n)
    lap = watch.lap(times)
    return lap._replace(cpu_seconds=lap.cpu_seconds + served() - before)


async def _alone(
    times: int, call: Callable[[int], Coroutine[Any, Any, None]], jobs: int = 1
) -> Lap:
    watch = Watch()
    for n in range(times):
        await call(n)
    return watch.lap(times * jobs)


def _rows(laps: dict[str, Laps], ours: str, beside: dict[str, float]) -> list[Row]:
    found = []
    for theirs, target in beside.items():
        found.append(rate_row(NAME, theirs, laps[theirs]))
        found.append(rate_row(NAME, ours, laps[ours], laps[theirs], theirs, target))
    return found
