"""What the dashboard asks first, of a store with a million jobs, beside `/healthz`.

    make bench-dashboard ARGS="--jobs 1000000 --store sqlite"

Each answer is timed over one connection, in turns with `/healthz`, and compared with it.
"""

import argparse
import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec
import structlog

from benchmarks.drive import BenchWorker
from benchmarks.fill import FINISHED, QUEUED, RUNNING, Group, fill_sqlite, task_shapes
from benchmarks.stores import prepare_postgres
from tests.support.postgres import PostgresServer, start_postgres
from tests.support.running_server import RunningServer, running_server
from windlass.assembly.backend import ServerOptions, running_backend
from windlass.clock import RealClock
from windlass.domain.config import Config
from windlass.engine.engine import Engine
from windlass.engine.loops.statistics import SeriesLoop, StatisticsLoop
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.store import SqliteStore

JOBS: Final = "/api/v1/jobs"
HEALTH: Final = "/healthz"
LIST_LIMIT: Final = 30.0  # times the cost of HEALTH
OVERVIEW_LIMIT: Final = 20.0
PAGE: Final = 50  # jobs, as the dashboard asks for
LONG_MS: Final = 10**9  # longer than any timing
COUNTED: Final = 100_000  # events that the figures are made of; the rest are skipped


class Case(msgspec.Struct, frozen=True):
    """A request, and how many times as long as `/healthz` it may take."""

    name: str
    path: str
    limit: float
    query: Mapping[str, str | int] = {}

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Timed(msgspec.Struct, frozen=True):
    """What a case took, in milliseconds, and beside `/healthz`."""

    name: str
    ms: float
    ratio: float
    limit: float


def _list(name: str, **query: str | int) -> Case:
    return Case(name, JOBS, LIST_LIMIT, {"limit": PAGE, **query})


CASES: Final = (
    _list("first page"),
    _list("queued", state="queued"),
    _list("running", state="running"),
    _list("completed", state="completed"),
    _list("one queue", queue="default"),
    _list("one task", task="noop-3"),
    _list("oldest first", sort="oldest"),
    _list("next to run", sort="priority"),
    _list("last finished", sort="finished"),
    _list("longest running", sort="running"),
    _list("text", text="noop"),
    _list("regex", regex="noop-[0-3]$"),
    _list("created in a range", created_from="2020-01-01T00:00:00Z"),
    Case("overview of an hour", "/api/v1/overview", OVERVIEW_LIMIT),
    Case("overview of a day", "/api/v1/overview", OVERVIEW_LIMIT, {"since": "24h"}),
    Case("count", f"{JOBS}/count", LIST_LIMIT, {"state": "queued"}),
)


class Connection:
    """One HTTP connection that is kept, with as little in the way as possible."""

    def __init__(self, address: str, token: str) -> None:
        self._address = urlsplit(address)
        self._head = f"Host: x\r\nAuthorization: Bearer {token}\r\n\r\n"

    async def open(self) -> None:
        host, port = self._address.hostname or "", self._address.port or 0
        self._reader, self._writer = await asyncio.open_connection(host, port)

    async def get(self, target: str) -> bytes:
        """Returns the body of an answer, which must be a good one."""
        self._writer.write(f"GET {target} HTTP/1.1\r\n{self._head}".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        body = await self._reader.readexactly(length)
        if " 200 " not in head.split("\r\n")[0]:
            raise RuntimeError(f"{target} answered {body.decode()[:200]}")
        return body

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def groups(jobs: int) -> Sequence[Group]:
    """Mostly ended jobs, some thousand queued and running, of ten tasks."""
    shapes = task_shapes(10)
    few = max(10, min(2_000, jobs // 20))
    return [
        Group(jobs - 2 * few, shapes, FINISHED),
        Group(few, shapes, RUNNING),
        Group(few, shapes, QUEUED),
    ]


async def count_figures(engine: Engine) -> None:
    """Makes figures and statistics of the newest events, so that no loop works beside a timing."""

    async def skip(tx: WriteTx) -> None:
        await tx.series.move_on(0, max(0, await tx.log.newest() - COUNTED))

    await engine.store.transact(skip)
    while (await SeriesLoop(engine).run_once(await engine.now())).events:
        continue
    while (await StatisticsLoop(engine).run_once(await engine.now())).events:
        continue


async def time_cases(
    server: RunningServer,
    token: str,
    rounds: int,
    cases: Sequence[Case] = CASES,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timed]:
    """Times each case in turns with `/healthz`; of each the lower quartile counts.

    What other processes take away lengthens long answers more often than short ones. A `clock` of
    processor time leaves that out, and what a database server does.
    """
    connection = Connection(server.address, token)
    await connection.open()

    async def once(target: str) -> float:
        began = clock()
        await connection.get(target)
        return (clock() - began) * 1_000

    found: list[Timed] = []
    for case in cases:
        await connection.get(case.target)
        pairs = [(await once(HEALTH), await once(case.target)) for _ in range(rounds)]
        health = statistics.quantiles((first for first, _ in pairs), n=4)[0]
        ms = statistics.quantiles((second for _, second in pairs), n=4)[0]
        found.append(Timed(case.name, ms, ms / health, case.limit))
    await connection.close()
    return found


@asynccontextmanager
async def filled_server(
    jobs: int, postgres: PostgresServer | None = None
) -> AsyncIterator[tuple[RunningServer, str]]:
    """A server over a filled store, whose loops stand still, and a token for it."""
    quiet = Config(
        statistics_interval_ms=LONG_MS, series_interval_ms=LONG_MS, heartbeat_timeout_ms=LONG_MS
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "filled.db"
        if postgres is None:
            await SqliteStore.open(path, RealClock()).close()
            fill_sqlite(path, groups(jobs), RealClock().now_ms())
            store = f"sqlite:{path}"
        else:
            store = postgres.create_database()
            await prepare_postgres(store, groups(jobs))
        async with running_backend(ServerOptions(store, "memory:", quiet)) as backend:
            await BenchWorker.enrol(backend.engine)  # the one that holds the running jobs
            await count_figures(backend.engine)
        async with running_server(store, quiet) as server:
            yield server, server.admin.headers["Authorization"].removeprefix("Bearer ")


async def _main(jobs: int, stores: Sequence[str], rounds: int) -> bool:
    is_fine = True
    for name in stores:
        postgres = start_postgres(durable=False) if name == "postgres" else None
        try:
            async with filled_server(jobs, postgres) as (server, token):
                print(f"{name}, {jobs:,} jobs")
                for timed in await time_cases(server, token, rounds):
                    mark = " " if timed.ratio <= timed.limit else "!"
                    is_fine = is_fine and timed.ratio <= timed.limit
                    print(f"{mark} {timed.name:22} {timed.ms:8.2f} ms {timed.ratio:6.1f} ×")
        finally:
            if postgres is not None:
                postgres.stop()
    return is_fine


def main() -> None:
    """Prints the table; the exit code says whether all limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--store", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    stores = given.store or ("sqlite", "postgres")
    sys.exit(not asyncio.run(_main(given.jobs, stores, given.rounds)))


if __name__ == "__main__":
    main()
