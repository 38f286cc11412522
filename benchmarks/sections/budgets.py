"""Seed 002's budgets: an assignment, a health cycle and a cleanup cycle, on both stores."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median

import uvloop

from benchmarks import drive
from benchmarks.fill import RUNNING, Group, plain_shape
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.stores import OpenFilled, filled_postgres, filled_sqlite
from tests.support.postgres import start_postgres
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop

WORKERS = 1_000
HELD = 10_000


def run(options: Options) -> list[Row]:
    """Both stores."""
    rows = uvloop.run(_measure("budgets, sqlite", partial(filled_sqlite, options.folder), options))
    server = start_postgres(durable=True)
    try:
        opened = partial(filled_postgres, server)
        return rows + uvloop.run(_measure("budgets, postgres", opened, options))
    finally:
        server.stop()


async def _measure(section: str, opened: OpenFilled, options: Options) -> list[Row]:
    queued = options.pick(1_000_000, 50_000)
    groups = [Group(HELD, [plain_shape()], RUNNING), Group(queued, [plain_shape()])]
    times = options.pick(20, 5)
    async with opened(groups) as engine:
        worker = await drive.BenchWorker.enrol(engine)  # the one that holds the running jobs
        first = await _timed(lambda: worker.sync(1), 1)
        assigned = await _timed(lambda: worker.sync(1), times * 5)
        cleaned = await _timed(lambda: CleanupLoop(engine).run_once(0), times)
        await asyncio.gather(*(drive.BenchWorker.enrol(engine, f"w{n}") for n in range(WORKERS)))
        checked = await _timed(lambda: HealthLoop(engine).run_once(0), times)
    held = f"{HELD:,} running, {queued:,} queued"
    return [
        _row(section, f"the first assignment, {held}", first, 100),
        _row(section, f"an assignment, {held}", assigned, 100),
        _row(section, f"a cleanup cycle, {held}", cleaned, 200),
        _row(section, f"a health cycle, {WORKERS:,} workers", checked, 50),
    ]


async def _timed(do: Callable[[], Awaitable[object]], times: int) -> list[float]:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        await do()
        found.append((time.perf_counter() - started) * 1000)
    return found


def _row(section: str, name: str, times: list[float], most_ms: int) -> Row:
    """The median stands in the table; the slowest one has to hold as well."""
    return Row(
        section=section,
        name=f"{name} (slowest {max(times):.1f})",
        value=median(times),
        unit="ms",
        target=f"< {most_ms} ms",
        met=max(times) < most_ms,
        samples=[round(each, 3) for each in times],
    )
