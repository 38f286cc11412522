"""What PostgreSQL writes to its log for a job, by table: bytes, which no other work disturbs.

Small plain jobs are submitted, claimed and completed one by one and in batches of 100. Whole pages
after a checkpoint are left out: they grow with time between checkpoints, not with jobs.
"""

import asyncio
import re
import subprocess
from collections import Counter
from collections.abc import Awaitable

import asyncpg
import uvloop

from benchmarks import drive
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.stores import open_postgres, prepare_postgres
from tests.support.postgres import PostgresServer, start_postgres

BATCHES = (1, 100)
GOAL = 1_400
WARM_UP = 500
RECORD = re.compile(r"len \(rec/tot\):\s*(\d+)/.*?(?:rel \d+/\d+/(\d+)|$)")


def run(options: Options) -> list[Row]:
    """Both sizes of batch."""
    server = start_postgres(durable=True)
    try:
        jobs = options.pick(5_000, 500)
        return [row for batch in BATCHES for row in uvloop.run(measure(server, jobs, batch))]
    finally:
        server.stop()


async def measure(server: PostgresServer, jobs: int, batch: int) -> list[Row]:
    """The bytes of a job with `batch` at once, in all and for the tables with most of them."""
    dsn = server.create_database()
    await prepare_postgres(dsn, [])
    watcher = await asyncpg.connect(dsn)
    async with open_postgres(dsn) as engine:
        worker = await drive.BenchWorker.enrol(engine)
        await engine.submit(drive.specs(WARM_UP))
        await worker.drain(batch)
        written: Counter[str] = Counter()

        async def submit() -> None:
            for first in range(0, jobs, batch):
                await engine.submit(drive.specs(batch, first))

        for work in (submit(), worker.drain(batch)):
            written += await _written(server, watcher, work)
    await watcher.close()
    section = f"wal, {batch} at once"
    total = sum(written.values()) / jobs
    return [
        Row(
            section=section,
            name="a job, from submit to completed",
            value=total,
            unit="B",
            target=f"≤ {GOAL:,} B",
            met=total <= GOAL,
        ),
        *(
            Row(section=section, name=f"… {table}", value=size / jobs, unit="B")
            for table, size in written.most_common(12)
        ),
    ]


async def _written(
    server: PostgresServer, watcher: asyncpg.Connection, work: Awaitable[object]
) -> Counter[str]:
    """The bytes of the log that `work` caused, by table or index."""
    position = "SELECT pg_current_wal_insert_lsn()::text"
    start = await watcher.fetchval(position)
    await work
    end = await watcher.fetchval(position)
    await watcher.execute(
        "SELECT pg_logical_emit_message(true, '', '')"
    )  # flushes what came before
    folder = await watcher.fetchval("SHOW data_directory")
    dump = [server.programs / "pg_waldump", "-p", f"{folder}/pg_wal", "-s", start, "-e", end]
    shown = await asyncio.to_thread(
        subprocess.run, dump, capture_output=True, text=True, check=True
    )
    relations = await watcher.fetch("SELECT relfilenode::text, relname::text FROM pg_class")
    names = {row[0]: row[1] for row in relations}
    found: Counter[str] = Counter()
    for line in shown.stdout.splitlines():
        if record := RECORD.search(line):
            size, relation = record.groups()
            found[names.get(relation, "commits, locks and others")] += int(size)
    return found
