"""pgqueuer on PostgreSQL, waiting for work: from enqueueing a job to its first line.

One worker process with its default batch; the database is scratch.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.fleet.functions import say_start
from benchmarks.fleet.processes import stopped_in_the_end, until

ENTRYPOINT = "start"
MODULE = "benchmarks.peers.pgqueuer_latency"


@contextmanager
def consumer(dsn: str, folder: Path) -> Iterator[Callable[[str, int], object]]:
    """A worker that waits for work; gives what enqueues a `start`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        connection = runner.run(asyncpg.connect(dsn))
        queries = Queries(AsyncpgDriver(connection))
        runner.run(_install(queries))

        def enqueue(address: str, number: int) -> object:
            payload = json.dumps([address, number]).encode()
            return runner.run(queries.enqueue(ENTRYPOINT, payload))

        log = folder / "pgqueuer.log"
        with stopped_in_the_end([sys.executable, "-m", MODULE, dsn], log):
            until("pgqueuer's worker", lambda: "ready" in log.read_text())
            yield enqueue
        runner.run(connection.close())


async def _install(queries: Queries) -> None:
    await queries.uninstall()
    await queries.install()


async def _work(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    queuer = PgQueuer(AsyncpgDriver(connection))

    @queuer.entrypoint(ENTRYPOINT)
    async def start(job: Job) -> None:
        address, number = json.loads(job.payload or b"")
        say_start(address, number)

    print("ready", flush=True)
    await queuer.run()


def main() -> None:
    parser = argparse.ArgumentParser(description="pgqueuer: a worker that says when jobs start")
    parser.add_argument("dsn")
    uvloop.run(_work(parser.parse_args().dsn))


if __name__ == "__main__":
    main()
