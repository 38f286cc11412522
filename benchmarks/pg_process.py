"""One process that claims and completes on PostgreSQL: the engine, *same rows* or *bare*.

`run` starts several, lets them go at once and adds up what they did. A process says
`ready`, waits for a line, works until nothing is left, and answers with one line of JSON.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Protocol

import msgspec
import uvloop

from benchmarks import drive
from benchmarks.measure import Lap
from benchmarks.raw.postgres_bare import BareWorker
from benchmarks.raw.postgres_rows import RawWorker
from benchmarks.stores import open_postgres
from windlass.clock import RealClock

MODULE = "benchmarks.pg_process"
KINDS = ("engine", "rows", "bare")


class Done(msgspec.Struct, frozen=True):
    """What a process did; the times are of a clock that all processes share."""

    jobs: int
    began: float
    ended: float
    cpu_seconds: float


class Drainer(Protocol):
    async def drain(self, batch: int) -> int: ...


def run(kind: str, dsn: str, batch: int, processes: int, overlap: int) -> Lap:
    """Drain the queue with so many processes, each with `overlap` workers at once."""
    command = [sys.executable, "-m", MODULE, kind, dsn, "--batch", str(batch)]
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, "--overlap", str(overlap), "--number", str(number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(1, processes + 1)
        ]
        for process in started:
            if _hear(process) != "ready":
                raise RuntimeError(f"a {kind} process did not get ready")
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        done = [msgspec.json.decode(_hear(process), type=Done) for process in started]
    seconds = max(one.ended for one in done) - min(one.began for one in done)
    return Lap(sum(one.jobs for one in done), seconds, sum(one.cpu_seconds for one in done))


def _hear(process: "subprocess.Popen[str]") -> str:
    return process.stdout.readline().strip() if process.stdout else ""


@asynccontextmanager
async def _workers(
    kind: str, dsn: str, number: int, overlap: int
) -> AsyncIterator[Sequence[Drainer]]:
    if kind == "engine":
        async with open_postgres(dsn, f"server-{number}") as engine:
            yield [
                await drive.BenchWorker.enrol(engine, f"worker-{number}-{n}")
                for n in range(overlap)
            ]
        return
    raw: list[RawWorker] | list[BareWorker]
    if kind == "rows":
        now = RealClock().now_ms
        raw = [
            await RawWorker.connect(
                dsn, (number - 1) * overlap + n + 1, f"worker-{number}-{n}", now
            )
            for n in range(overlap)
        ]
    else:
        raw = [await BareWorker.connect(dsn) for _ in range(overlap)]
    yield raw
    for worker in raw:
        await worker.close()


async def work(kind: str, dsn: str, number: int, batch: int, overlap: int) -> Done:
    """The part of one process."""
    async with _workers(kind, dsn, number, overlap) as workers:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began, cpu = time.monotonic(), time.process_time()
        jobs = sum(await asyncio.gather(*(worker.drain(batch) for worker in workers)))
        return Done(jobs, began, time.monotonic(), time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description="one process of the PostgreSQL benchmark")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("dsn")
    parser.add_argument("--number", type=int, default=1)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--overlap", type=int, default=1)
    given = parser.parse_args()
    done = uvloop.run(work(given.kind, given.dsn, given.number, given.batch, given.overlap))
    print(msgspec.json.encode(done).decode(), flush=True)


if __name__ == "__main__":
    main()
