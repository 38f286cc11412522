"""Windlass without a server: workers straight on PostgreSQL.

Jobs are submitted by an engine of this process on the same database; the workers are
processes of the command line. As over HTTP, jobs wait in a paused queue before the clock
starts, and count once their end is recorded.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.fleet.loop_thread import LoopThread
from benchmarks.fleet.over_http import expect_waiting
from benchmarks.fleet.processes import direct_worker
from benchmarks.measure import Lap, Watch
from benchmarks.stores import open_postgres, prepare_postgres
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.engine.engine import Engine
from windlass.tasks.task import Task

QUEUE = "default"
CHUNK = 1_000
END_SECONDS = 300
POLL_SECONDS = 0.01

OPEN = "SELECT EXISTS (SELECT FROM ready) OR EXISTS (SELECT FROM leases)"
READY = "SELECT count(*) FROM ready"
COMPLETED = "SELECT count(*) FROM jobs WHERE state = $1"


def spec(function: Task[..., Any], *args: Any) -> JobSpec:
    """The job that calls a marked function."""
    asked = function.job(*args)
    return JobSpec(task=asked.task, args=asked.args)


class BesideStore:
    """An engine beside the workers, on a loop of its own."""

    def __init__(
        self, runner: LoopThread, engine: Engine, watching: "asyncpg.Connection[Any]"
    ) -> None:
        self._runner = runner
        self._engine = engine
        self._watching = watching

    def submitter(self, function: Task[..., Any]) -> Callable[[str, int], object]:
        """What submits one job that calls `function` with an address and a number."""

        def submit(address: str, number: int) -> object:
            return self._runner.run(self._engine.submit([spec(function, address, number)]))

        return submit

    def drain(self, jobs: Sequence[JobSpec]) -> tuple[Lap, Lap]:
        """Submit `jobs` to the paused queue, then let them run; a lap for each of the two."""
        return self._runner.run(self._drain(jobs))

    async def _drain(self, jobs: Sequence[JobSpec]) -> tuple[Lap, Lap]:
        before = await self._completed()
        await self._engine.queues.pause(QUEUE)
        watch = Watch()
        for first in range(0, len(jobs), CHUNK):
            await self._engine.submit(jobs[first : first + CHUNK])
        submitted = watch.lap(len(jobs))
        expect_waiting(await self._watching.fetchval(READY), len(jobs))
        watch = Watch()
        await self._engine.queues.resume(QUEUE)
        await self._until_drained()
        drained = watch.lap(len(jobs))
        done = await self._completed() - before
        if done != len(jobs):
            raise RuntimeError(f"the workers completed {done} of {len(jobs)} jobs")
        return submitted, drained

    async def _until_drained(self) -> None:
        deadline = time.monotonic() + END_SECONDS
        while await self._watching.fetchval(OPEN):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the workers did not end all jobs in {END_SECONDS} s")
            await asyncio.sleep(POLL_SECONDS)

    async def _completed(self) -> int:
        done: int = await self._watching.fetchval(COMPLETED, State.COMPLETED.code)
        return done


@contextmanager
def direct_on_postgres(dsn: str, folder: Path, workers: int, slots: int) -> Iterator[BesideStore]:
    """So many workers on a new database, and an engine to submit with."""
    with ExitStack() as stack:
        runner = stack.enter_context(LoopThread())
        runner.run(prepare_postgres(dsn, []))
        for number in range(1, workers + 1):
            name = f"direct-{number}"
            stack.enter_context(direct_worker(folder / name, dsn, name, slots))
        opened = AsyncExitStack()
        engine = runner.run(opened.enter_async_context(open_postgres(dsn, "bench")))
        stack.callback(lambda: runner.run(opened.aclose()))
        watching = runner.run(asyncpg.connect(dsn))
        stack.callback(lambda: runner.run(watching.close()))
        yield BesideStore(runner, engine, watching)
