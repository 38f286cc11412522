"""Group commit: 64 callers with one job each beside one caller, on SQLite and PostgreSQL.

A caller submits one job and waits for the answer, or, as a worker, finishes one job and
claims the next; then it does so again. Everything is durable, on a real disk.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import drive
from benchmarks.measure import Lap, Laps, Watch
from benchmarks.options import Options
from benchmarks.report import Row, rate_row
from benchmarks.stores import open_postgres, open_sqlite, prepare_postgres
from tests.support.postgres import start_postgres
from windlass.clock import RealClock
from windlass.engine.engine import Engine

CALLERS = 64
TARGET = 5.0

Open = Callable[[], AbstractAsyncContextManager[Engine]]
Calls = Callable[[int], Coroutine[Any, Any, None]]  # caller's number


def run(options: Options) -> list[Row]:
    """Both stores."""
    rows = uvloop.run(_measure("group commit, sqlite", partial(_sqlite, options.folder), options))
    server = start_postgres(durable=True)
    try:
        opened = partial(_postgres, server.create_database())
        return rows + uvloop.run(_measure("group commit, postgres", opened, options))
    finally:
        server.stop()


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Engine]:
    async with open_sqlite(folder / "group.db", RealClock()) as engine:
        yield engine


@asynccontextmanager
async def _postgres(dsn: str) -> AsyncIterator[Engine]:
    await prepare_postgres(dsn, [])
    async with open_postgres(dsn) as engine:
        yield engine


async def _measure(section: str, opened: Open, options: Options) -> list[Row]:
    rounds, calls = options.pick(5, 2), options.pick(40, 10)
    async with opened() as engine:
        workers = [await drive.BenchWorker.enrol(engine, f"w{n}") for n in range(CALLERS)]
        jobs = drive.specs(1)

        async def submit(_: int) -> None:
            await engine.submit(jobs)

        async def work(caller: int) -> None:
            await workers[caller].sync(1)

        rows = await _compare(section, "submits", submit, rounds, calls)
        # The jobs submitted so far are what the workers take.
        return rows + await _compare(section, "syncs", work, rounds, calls // 2)


async def _compare(section: str, what: str, call: Calls, rounds: int, calls: int) -> list[Row]:
    one: list[Lap] = []
    many: list[Lap] = []
    for _ in range(rounds):
        one.append(await _lap([0], call, calls * 4))
        many.append(await _lap(range(CALLERS), call, calls))
    alone, together = Laps(one), Laps(many)
    return [
        rate_row(section, f"{what}, 1 caller", alone),
        rate_row(section, f"{what}, {CALLERS} callers", together, alone, "1 caller", TARGET),
    ]


async def _lap(callers: Sequence[int], call: Calls, calls: int) -> Lap:
    async def again_and_again(caller: int) -> None:
        for _ in range(calls):
            await call(caller)

    watch = Watch()
    await asyncio.gather(*map(again_and_again, callers))
    return watch.lap(len(callers) * calls)
