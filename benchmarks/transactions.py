"""Jobs in users' transactions: what they cost there, and how soon they are in the queue.

`python -m benchmarks.transactions` starts a PostgreSQL and measures, in one run:

- a transaction that inserts a row, with and without a job submitted in it;
- from the commit until a server has moved the job (it listens, as servers do);
- how many jobs of single transactions a server moves in a second, beside as many single submits.
"""

import asyncio
import statistics
import tempfile
import time

import psycopg

from tests.support.postgres import start_postgres
from windlass.assembly.backend import ServerOptions, running_backend
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.store.postgres.store import PostgresStore
from windlass.transactions.submitting import submit_in

TRANSACTIONS = 300
JOBS = 2_000
JOB = JobSpec(task="nothing", args={"n": 1})
MOVED = "SELECT EXISTS (SELECT FROM windlass.jobs WHERE id = %s)"


def seconds_of(dsn: str, submits: bool) -> float:
    """Returns the median time of a transaction."""
    times = []
    with psycopg.connect(dsn) as connection:
        for number in range(TRANSACTIONS):
            began = time.perf_counter()
            connection.execute("INSERT INTO orders VALUES (%s)", [number])
            if submits:
                submit_in(connection, JOB)
            connection.commit()
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def seconds_until_moved(dsn: str) -> float:
    """Returns the median time from a commit until the job is in the queue."""
    times = []
    with psycopg.connect(dsn) as connection, psycopg.connect(dsn, autocommit=True) as watch:
        for _ in range(TRANSACTIONS // 3):
            job = submit_in(connection, JOB).id
            connection.commit()
            began = time.perf_counter()
            while not (watch.execute(MOVED, [job]).fetchone() or [False])[0]:
                pass
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def fill_inbox(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SET windlass.notify = off")
        for _ in range(JOBS):
            submit_in(connection, JOB)
            connection.commit()


async def measure(dsn: str, folder: str) -> None:
    store = await PostgresStore.connect(dsn)
    await store.upgrade()
    await store.close()
    # The loop looks seldom: what is measured is told by notifications.
    config = Config(inbox_interval_ms=3_600_000)
    async with running_backend(ServerOptions(dsn, f"file://{folder}", config)) as backend:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE TABLE orders (id bigint)")
        plain = await asyncio.to_thread(seconds_of, dsn, False)
        with_job = await asyncio.to_thread(seconds_of, dsn, True)
        print(f"transaction            {plain * 1e3:8.2f} ms")
        print(f"the same with a job    {with_job * 1e3:8.2f} ms  {with_job / plain:.1f}×")
        moved = await asyncio.to_thread(seconds_until_moved, dsn)
        print(f"commit to queue        {moved * 1e3:8.2f} ms")
        await backend.inbox.move()
        began = time.perf_counter()
        for _ in range(JOBS):
            await backend.engine.submit([JOB])
        single = time.perf_counter() - began
        await asyncio.to_thread(fill_inbox, dsn)
        began = time.perf_counter()
        await backend.inbox.move()
        moving = time.perf_counter() - began
        print(f"single submits         {JOBS / single:8.0f} /s")
        print(f"moved from the inbox   {JOBS / moving:8.0f} /s  {single / moving:.1f}×")


def main() -> None:
    server = start_postgres()
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(server.dsn(), folder))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
