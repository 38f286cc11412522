"""`explain` on a large fleet beside `show`, as a client meets both: over HTTP on this machine.

Every worker reports what an agent reports, with a host name of its own, so no two of them have
the same metadata. Beside it stands the `show` of a job that has ended, which is plain: that of
one that is queued reads the fleet too, to tell when it will start. The requests take turns, so
that all meet the same moments. Judged are the ratio and the CPU time of this process, client and
server: on a machine that others use, the clock tells of them.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
import msgspec
import structlog
import uvloop

from benchmarks import drive
from benchmarks.measure import Lap, Laps, Watch
from benchmarks.options import Options
from benchmarks.report import Row
from tests.support.postgres import start_postgres
from tests.support.running_server import running_server
from windlass.domain.job.job import JobSpec
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.store.postgres.store import PostgresStore

NAME = "explain"
MAX_MS = 200.0
MAX_TIMES = 50.0
AT_ONCE = 500
GIB = 1024**3
TOOLS = ("clang", "cmake", "docker", "ffmpeg", "gcc", "git", "make", "ninja", "python", "rustc")

# Nobody can run the first; a third of the fleet the second, which others stand before; the
# third also takes resources, so that what workers hold is read too.
ASKED = {
    "nobody can run it": JobSpec(task=drive.TASK, requires=("memory>=64GiB", "gpus>=1")),
    "1,000 jobs ahead": JobSpec(task=drive.TASK, requires=("memory>=16GiB",), priority=-5),
    "takes resources": JobSpec(task=drive.TASK, resources={"cpus": 2, "memory": "8GiB"}),
}


def run(options: Options) -> list[Row]:
    """On SQLite and on PostgreSQL."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    workers, rounds = options.pick(10_000, 1_000), options.pick(21, 7)
    store = f"sqlite:{Path(options.folder) / 'explain.db'}"
    rows = uvloop.run(measure("sqlite", store, workers, rounds))
    server = start_postgres(durable=False)
    try:
        dsn = server.create_database()
        uvloop.run(_upgrade(dsn))
        return rows + uvloop.run(measure("postgres", dsn, workers, rounds))
    finally:
        server.stop()


async def measure(kind: str, store: str, workers: int, rounds: int) -> list[Row]:
    """Fill a server's store, and ask it."""
    async with running_server(store) as server:
        engine = server.services.engine
        await _enrol(engine, workers)
        await engine.submit(drive.specs(1_000))
        jobs = (await engine.submit(list(ASKED.values()))).ids
        (plain,) = (await engine.submit(drive.specs(1))).ids
        await engine.jobs.cancel([plain])
        ask = Asking(kind, server.admin, plain, rounds)
        return [
            row
            for name, job in zip(ASKED, jobs, strict=True)
            for row in await ask.rows(f"{workers:,} workers, {name}", job)
        ]


class Asking(NamedTuple):
    """A server with a store of this kind, and an ended job on it."""

    kind: str
    client: httpx.AsyncClient
    ended: int
    rounds: int

    async def rows(self, name: str, job: int) -> list[Row]:
        """The three requests, in turns."""
        plain, shows, explains = [], [], []
        await _ask(self.client, f"/api/v1/jobs/{job}/explain")  # what is cached once is cached
        for _ in range(self.rounds):
            plain.append(await _ask(self.client, f"/api/v1/jobs/{self.ended}"))
            shows.append(await _ask(self.client, f"/api/v1/jobs/{job}"))
            explains.append(await _ask(self.client, f"/api/v1/jobs/{job}/explain"))
        took = median(lap.cpu_seconds for lap in explains) * 1000
        ratio = 1 / Laps(explains).ratio(Laps(plain))
        return [
            _row(self.kind, f"{name}: plain show", plain),
            _row(self.kind, f"{name}: show with a forecast", shows),
            msgspec.structs.replace(
                _row(self.kind, f"{name}: explain", explains),
                ratio=ratio, beside="plain show",
                target=f"< {MAX_MS:.0f} ms of CPU, ≤ {MAX_TIMES:.0f}",
                met=took < MAX_MS and ratio <= MAX_TIMES,
            ),
        ]  # fmt: skip


def _row(kind: str, name: str, laps: Sequence[Lap]) -> Row:
    return Row(
        section=f"{NAME}, {kind}", name=name, unit="ms",
        value=median(lap.seconds for lap in laps) * 1000,
        cpu_us=median(lap.cpu_us for lap in laps),
    )  # fmt: skip


async def _ask(client: httpx.AsyncClient, path: str) -> Lap:
    watch = Watch()
    reply = await client.get(path)
    lap = watch.lap(1)
    if reply.status_code != 200:
        raise RuntimeError(f"expected an answer at {path}, got {reply.text}")
    return lap


async def _enrol(engine: Engine, workers: int) -> None:
    for start in range(0, workers, AT_ONCE):
        some = range(start, min(workers, start + AT_ONCE))
        await asyncio.gather(*(engine.workers.enrol(_worker(number)) for number in some))


def _worker(number: int) -> Enrolment:
    said: dict[str, Any] = {
        "system:architectures": ["amd64"],
        "system:cpus": 4 * (1 + number % 4),
        "system:memory": (4 << number % 3) * GIB,
        "system:os": "linux",
        "system:hostname": f"host-{number}",
        "system:gpus": 0,
        "ffmpeg:encoders": [f"encoder_{n}" for n in range(100)],
    }
    said |= {f"{tool}:available": True for tool in TOOLS}
    said |= {f"{tool}:version": "12.3.4" for tool in TOOLS}
    return Enrolment(name=f"worker-{number:05}", metadata=said)


async def _upgrade(dsn: str) -> None:
    store = await PostgresStore.connect(dsn)
    await store.upgrade()
    await store.close()
