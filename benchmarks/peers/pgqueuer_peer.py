"""pgqueuer on PostgreSQL: the yardstick for claim + complete.

The queue is filled first; then worker processes drain it with no-op async jobs. The
clock is the database's: from the moment the workers are let go to the last row of
pgqueuer's own log, so a job counts once its end is recorded.

Tuned as pgqueuer's documentation says: uvloop, the asyncpg driver, its autovacuum
settings, the batch size asked for, and no limit on concurrency. Its tables stay logged
(`durable`, the default). The database named by the DSN is scratch: pgqueuer's tables in
it are dropped and made anew.

    python -m benchmarks.peers.pgqueuer_peer postgresql://… --jobs 60000 --batch 500
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime, timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

ENTRYPOINT = "noop"
SUBMIT_CHUNK = 1_000
MODULE = "benchmarks.peers.pgqueuer_peer"
NO_AGGREGATION = timedelta(0)


def run(dsn: str, jobs: int, batch: int, processes: int) -> float:
    """Drain `jobs` no-op jobs with `processes` workers; jobs per second."""
    uvloop.run(_fill(dsn, jobs))
    command = [sys.executable, "-m", MODULE, dsn, "--batch", str(batch), "--worker"]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(processes)
        ]
        for worker in workers:
            _expect(worker, "ready")
        started = uvloop.run(_now(dsn))
        for worker in workers:
            _send(worker, "go")
    failed = [worker.returncode for worker in workers if worker.returncode]
    if failed:
        raise RuntimeError(f"pgqueuer workers ended with {failed}")
    return jobs / uvloop.run(_seconds_since(dsn, started, jobs))


async def _fill(dsn: str, jobs: int) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        queries = Queries(AsyncpgDriver(connection))
        await queries.uninstall()
        await queries.install()
        await queries.optimize_autovacuum()
        for first in range(0, jobs, SUBMIT_CHUNK):
            count = min(SUBMIT_CHUNK, jobs - first)
            payloads: list[bytes | None] = [b"%d" % (first + i) for i in range(count)]
            await queries.enqueue([ENTRYPOINT] * count, payloads, [0] * count)
        await connection.execute("VACUUM ANALYZE pgqueuer")
    finally:
        await connection.close()


async def _now(dsn: str) -> datetime:
    connection = await asyncpg.connect(dsn)
    try:
        now: datetime = await connection.fetchval("SELECT clock_timestamp()")
        return now
    finally:
        await connection.close()


async def _seconds_since(dsn: str, started: datetime, jobs: int) -> float:
    """How long until the last job was logged; every job must be there exactly once."""
    connection = await asyncpg.connect(dsn)
    try:
        row = await connection.fetchrow(
            "SELECT count(*) AS done, count(DISTINCT job_id) AS jobs, max(created) AS ended "
            "FROM pgqueuer_log WHERE status = 'successful'"
        )
        if row is None or (row["done"], row["jobs"]) != (jobs, jobs):
            raise RuntimeError(f"pgqueuer recorded {row} of {jobs} jobs")
        ended: datetime = row["ended"]
        return (ended - started).total_seconds()
    finally:
        await connection.close()


async def _work(dsn: str, batch: int) -> None:
    """One worker process: say ready, wait for the word, drain the queue."""
    connection = await asyncpg.connect(dsn)
    try:
        queuer = PgQueuer(AsyncpgDriver(connection))

        @queuer.entrypoint(ENTRYPOINT)
        async def noop(job: Job) -> None:
            """Nothing: only the queue is measured."""

        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await queuer.qm.run(
            batch_size=batch,
            mode=QueueExecutionMode.drain,
            log_aggregation_interval=NO_AGGREGATION,
        )
    finally:
        await connection.close()


def _expect(worker: subprocess.Popen[str], word: str) -> None:
    said = worker.stdout.readline().strip() if worker.stdout else ""
    if said != word:
        raise RuntimeError(f"a pgqueuer worker said {said!r} instead of {word!r}")


def _send(worker: subprocess.Popen[str], word: str) -> None:
    if worker.stdin:
        worker.stdin.write(word + "\n")
        worker.stdin.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="pgqueuer: claim + complete, jobs per second")
    parser.add_argument("dsn")
    parser.add_argument("--jobs", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        uvloop.run(_work(given.dsn, given.batch))
    else:
        print(f"{run(given.dsn, given.jobs, given.batch, given.processes):,.0f} jobs/s")


if __name__ == "__main__":
    main()
