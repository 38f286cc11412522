"""PostgreSQL with a transaction held open elsewhere, beside the same load before it.

A snapshot that stays open keeps every dead row and index entry. A statement that passes them gets
slower with every job, so the rate is shown in slices: `at its maximum`, with a backlog that is
refilled, and paced at 800 jobs a second, where each sync brings few jobs. Dead rows are counted
before and after. The clean phase comes first and is as long as one slice.
"""

import asyncio
import time
from typing import NamedTuple

import asyncpg
import uvloop

from benchmarks import drive
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.sections.postgres import SETTINGS
from benchmarks.stores import open_postgres, prepare_postgres
from tests.support.postgres import PostgresServer, start_postgres
from windlass.engine.engine import Engine

WORKERS = 2
SLOTS = 64
BACKLOG = 2_000
PACE = 800
TICK = 0.01
SLICES = 6
HOT = ("jobs", "ready", "leases", "workers", "counters", "events")


class Load(NamedTuple):
    """How jobs arrive: so many a second, or as many as are taken."""

    name: str
    pace: int
    goal: float


LOADS = (Load("at its maximum", 0, 0.9), Load(f"paced, {PACE}/s", PACE, 0.98))


class Counts:
    """What was submitted and claimed so far."""

    def __init__(self) -> None:
        self.submitted = 0
        self.claimed = 0


def run(options: Options) -> list[Row]:
    """Measure both loads, each on a database of its own."""
    seconds = options.pick(10, 2)
    if options.long:
        seconds = 60
    server = start_postgres(durable=True, settings=SETTINGS)
    try:
        return [row for load in LOADS for row in uvloop.run(_measure(server, load, seconds))]
    finally:
        server.stop()


async def _measure(server: PostgresServer, load: Load, seconds: int) -> list[Row]:
    dsn = server.create_database()
    await prepare_postgres(dsn, [])
    section = f"held transaction, {load.name}"
    async with open_postgres(dsn) as engine:
        counts = Counts()
        tasks = [asyncio.create_task(_submit(engine, counts, load.pace))]
        for number in range(WORKERS):
            worker = await drive.BenchWorker.enrol(engine, f"w{number}")
            tasks.append(asyncio.create_task(_work(worker, counts)))
        await _slice(counts, seconds / 2)  # to warm up
        clean = await _slice(counts, seconds)
        dead = await _dead(dsn)
        holder = await asyncpg.connect(dsn)
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM meta")
        rates = [await _slice(counts, seconds) for _ in range(SLICES)]
        more = await _dead(dsn)
        await holder.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    rows = [Row(section=section, name="clean", value=clean, unit="jobs/s")]
    for number, rate in enumerate(rates, 1):
        ratio = rate / clean
        rows.append(
            Row(
                section=section, name=f"held, slice {number} of {seconds} s", value=rate,
                unit="jobs/s", ratio=ratio, beside="clean", target=f"≥ {load.goal:.2f}",
                met=ratio >= load.goal,
            )
        )  # fmt: skip
    for table in HOT:
        grown = float(more[table] - dead[table])
        rows.append(Row(section=section, name=f"more dead rows: {table}", value=grown, unit=""))
    return rows


async def _submit(engine: Engine, counts: Counts, pace: int) -> None:
    began = time.monotonic()
    while True:
        if pace:
            await asyncio.sleep(TICK)
            missing = int((time.monotonic() - began) * pace) - counts.submitted
        else:
            missing = counts.claimed + BACKLOG - counts.submitted
        if missing > (0 if pace else BACKLOG // 2):
            counts.submitted += missing
            await engine.submit(drive.specs(missing, counts.submitted - missing))
        elif not pace:
            await asyncio.sleep(0)


async def _work(worker: drive.BenchWorker, counts: Counts) -> None:
    while True:
        given = await worker.sync(SLOTS)
        counts.claimed += given
        if not given:
            await asyncio.sleep(TICK)


async def _slice(counts: Counts, seconds: float) -> float:
    began, before = time.monotonic(), counts.claimed
    await asyncio.sleep(seconds)
    return (counts.claimed - before) / (time.monotonic() - began)


async def _dead(dsn: str) -> dict[str, int]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        rows = await connection.fetch("SELECT relname, n_dead_tup FROM pg_stat_user_tables")
        return {row[0]: row[1] for row in rows}
    finally:
        await connection.close()
