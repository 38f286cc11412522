"""Eight processes on one PostgreSQL, killed at random: no job is lost, doubled or stuck."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.chaos_worker import CONFIG
from tests.support.forms import by_form
from tests.support.running import run
from tests.support.waiting import until
from windlass.clock import RealChance
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import STATE_BY_CODE, TERMINAL
from windlass.domain.rows.events import EventKind
from windlass.engine.engine import Engine
from windlass.engine.verify import verify
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.transaction import ReadTx

PROCESSES = 8
JOBS = by_form(3_000, 20_000)  # as many kills in both
KILLS = 10
BATCH = 500
SEED = 8
LIMIT_S = 600  # a bound for machines under load; alone it takes a fraction of that

ROOT = Path(__file__).parents[2]
ENDED = "SELECT count(*) = $1 FROM windlass.jobs WHERE state <> 0"


class Fleet:
    """The processes, and the hand that kills them as their work goes on."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._chance = random.Random(SEED)
        self._started = 0
        self._done = 0
        steps = range(JOBS // 20, JOBS * 9 // 10)
        self._kill_at = sorted(self._chance.sample(steps, KILLS))
        self._running: list[asyncio.subprocess.Process] = []
        self._readers: list[asyncio.Task[None]] = []
        self.killed = 0

    async def start(self, worker: str = "", takeover: bool = False) -> None:
        """One more process, with a new worker or one that takes over from a killed one."""
        self._started += 1
        name = worker or f"worker-{self._started}"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.chaos_worker",
            self._dsn, f"server-{self._started}", name, "takeover" if takeover else "new",
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._running.append(process)
        self._readers.append(asyncio.create_task(self._follow(process, name)))

    async def _follow(self, process: asyncio.subprocess.Process, worker: str) -> None:
        """Count what it reports; kill someone whenever enough was done; replace the dead."""
        assert process.stdout is not None
        async for line in process.stdout:
            self._done += int(line)
            while self._kill_at and self._done >= self._kill_at[0]:
                self._kill_at.pop(0)
                self._chance.choice(self._running).kill()
        code = await process.wait()
        if process in self._running:
            self._running.remove(process)
            assert code == -9, f"expected to be killed or told to stop, {worker} ended with {code}"
            self.killed += 1
            # Half of them are known to be dead; of the others only the silence tells.
            if self._chance.random() < 0.5:
                await self.start(worker, takeover=True)
            else:
                await self.start()

    async def stop(self) -> list[int | None]:
        """Tell all to stop; how they ended."""
        processes, self._running = self._running, []
        for process in processes:
            process.terminate()
        ends = await asyncio.gather(*self._readers, return_exceptions=True)
        assert [end for end in ends if end is not None] == []
        return [process.returncode for process in processes]

    def check(self) -> None:
        """Raise what a process ended with, other than being killed."""
        for reader in self._readers:
            if reader.done():
                reader.result()


def specs(first: int, ids: list[int]) -> Iterator[JobSpec]:
    """A batch: three quarters plain, the rest tied to other jobs, to limits, or failing once."""
    for number in range(first, first + BATCH):
        task = f"task-{number % 5}"
        if number % 20 in (3, 7) and ids:
            yield JobSpec(task=task, args={"n": number}, after=(ids[-1 - number % 40],))
        elif number % 20 == 11:
            limit = Concurrency(f"key-{number % 3}", 4)
            yield JobSpec(task=task, args={"n": number}, concurrency=limit)
        elif number % 20 in (5, 13):
            yield JobSpec(task=task, args={"n": number, "fails": 1})
        else:
            yield JobSpec(task=task, args={"n": number})


async def submit_all(engine: Engine) -> None:
    ids: list[int] = []
    for first in range(0, JOBS, BATCH):
        ids += (await engine.submit(list(specs(first, ids)))).ids


async def outcomes(store: PostgresStore) -> tuple[Counter[int], Counter[str]]:
    """How many ends the log holds for each job, and of which kind."""
    ends: Counter[int] = Counter()
    states: Counter[str] = Counter()
    terminal = {state.code for state in TERMINAL}

    async def read(tx: ReadTx) -> None:
        after = 0
        while events := await tx.log.read(after, 5_000):
            after = events[-1].seq
            for event in events:
                if event.kind == EventKind.JOB and event.to in terminal:
                    ends[event.job] += 1
                    states[str(STATE_BY_CODE[event.to])] += 1

    await store.read(read)
    return ends, states


async def play(dsn: str) -> None:
    async with AsyncExitStack() as ends:
        store = await PostgresStore.connect(dsn, "submitter")
        ends.push_async_callback(store.close)
        await store.upgrade()
        engine = Engine(store, CONFIG, RealChance())
        ends.push_async_callback(engine.close)
        await engine.start()
        watcher = await asyncpg.connect(dsn)
        ends.push_async_callback(watcher.close)
        await watch_fleet(dsn, engine, watcher)
        assert await verify(store, CONFIG) == []
        ended, states = await outcomes(store)
    assert len(ended) == JOBS
    assert set(ended.values()) == {1}
    assert states == {"completed": JOBS}


async def watch_fleet(dsn: str, engine: Engine, watcher: "asyncpg.Connection[Any]") -> None:
    fleet = Fleet(dsn)
    for _ in range(PROCESSES):
        await fleet.start()

    async def has_ended() -> bool:
        fleet.check()
        ended: bool = await watcher.fetchval(ENDED, JOBS)
        return ended

    try:
        await submit_all(engine)
        await until("all jobs ended", has_ended, LIMIT_S, 0.25)
    finally:
        codes = await fleet.stop()
    assert codes == [0] * PROCESSES
    assert fleet.killed == KILLS


def test_killed_processes_lose_double_and_block_nothing(postgres_dsn: str) -> None:
    run(play(postgres_dsn))
