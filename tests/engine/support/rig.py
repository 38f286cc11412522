"""A started engine on one of the stores, a clock that tests move, and scripted workers.

Every test of this folder is a coroutine that gets a `rig`; see `conftest.py`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, TypeVar

import uvloop

from tests.engine.support.agent import Agent
from tests.store.conformance.driver import START_MS
from tests.support.specs import spec_of
from windlass.domain.config import Config
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import JobRecord, Worker
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop, SchedulingLoop
from windlass.engine.loops.watchdog import WatchdogLoop
from windlass.engine.submit.submission import Submitted, WorkflowSpec
from windlass.ports.clock import Chance
from windlass.store.sql.snapshot import Snapshot
from windlass.store.store import Store

T = TypeVar("T")

MAX_TEST_S = 600
SECOND = 1_000
MINUTE = 60_000
HOUR = 3_600_000


class Turn:
    """`await Turn()` lets everything else that can run do so once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class NoChance:
    """Chance that never changes anything."""

    def fraction(self) -> float:
        return 0.0


NO_CHANCE = NoChance()


class Base:
    """What a rig stands on: a store that can be opened again, and its clock."""

    kind: str

    async def open(self, server: str) -> Store:
        """Access to the data for the engine of this name, beside those already open."""
        raise NotImplementedError

    async def set_clock(self, ms: int) -> None:
        raise NotImplementedError


class Rig:
    """The test's world: `engine` works on `store`, and time passes by `advance`."""

    def __init__(self, base: Base) -> None:
        self.kind = base.kind
        self.now = START_MS
        self._base = base
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._opened: list[tuple[Engine, Store]] = []
        self.store: Store
        self.engine: Engine
        try:
            self.run(self._start(Config()))
        except BaseException:
            self.close()
            raise

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end; what hangs fails."""
        return self._runner.run(asyncio.wait_for(coroutine, MAX_TEST_S))

    async def _start(
        self, config: Config, chance: Chance = NO_CHANCE, fast_path: bool = True
    ) -> None:
        self.store = await self._base.open("s1")
        self.engine = await self._add(self.store, config, chance, fast_path)
        self._watchdog = WatchdogLoop(self.engine)

    async def _add(
        self,
        store: Store,
        config: Config,
        chance: Chance = NO_CHANCE,
        fast_path: bool = True,
    ) -> Engine:
        engine = Engine(store, config, chance, fast_path=fast_path)
        self._opened.append((engine, store))
        await engine.start()
        return engine

    async def restart(
        self,
        config: Config | None = None,
        chance: Chance = NO_CHANCE,
        fast_path: bool = True,
    ) -> Engine:
        """End the engine as a crash would, between transactions, and start a new one."""
        chosen = self.engine.config if config is None else config
        await self._stop()
        await self._start(chosen, chance, fast_path)
        return self.engine

    async def restart_over(self, wrap: Callable[[Store], Store]) -> Engine:
        """The same over a store that `wrap` returns, without the fast path."""
        config = self.engine.config
        await self._stop()
        self.store = wrap(await self._base.open("s1"))
        self.engine = await self._add(self.store, config, fast_path=False)
        return self.engine

    async def another_engine(self, server: str = "s2") -> Engine:
        """A second engine on the same data (not on SQLite, where one server works on a file)."""
        return await self._add(await self._base.open(server), self.engine.config)

    async def _stop(self) -> None:
        for engine, store in reversed(self._opened):
            await engine.close()
            await store.close()
        self._opened.clear()

    def close(self) -> None:
        try:
            self.run(self._stop())
        finally:
            self._runner.close()

    # Time

    async def advance(self, ms: int) -> None:
        """Let time pass. Nothing else happens by itself.

        Engines that are about to set their alarm read the time first, so that it does not
        ring because the test moved the clock.
        """
        for engine, _ in self._opened:
            await engine.background.finish()
        self.now += ms
        await self._base.set_clock(self.now)

    async def pass_time(self, ms: int, step_ms: int = 15 * SECOND) -> None:
        """Let time pass with the health loop hearing workers, as on a running server."""
        end = self.now + ms
        await self.health()
        while self.now < end:
            await self.advance(min(step_ms, end - self.now))
            await self.health()

    async def end_grace(self) -> None:
        """Get past the grace that follows a start, after which leases may end."""
        await self.pass_time(self.engine.config.heartbeat_timeout_ms)

    # The loops

    async def health(self) -> Any:
        return await HealthLoop(self.engine).run_once(self.now)

    async def cleanup(self) -> Any:
        return await CleanupLoop(self.engine).run_once(self.now)

    async def scheduling(self) -> Any:
        return await SchedulingLoop(self.engine).run_once(self.now)

    async def watchdog(self) -> Any:
        return await self._watchdog.run_once(self.now)

    # Jobs

    async def submit(self, task: str = "shell", **fields: Any) -> int:
        """Submit one job; its id."""
        submitted = await self.engine.submit([spec_of(task=task, **fields)])
        return submitted.ids[0]

    async def submit_all(self, *jobs: Mapping[str, Any], workflow: str = "") -> Submitted:
        """Submit jobs in one go, each given by its fields."""
        specs = [spec_of(**{"task": "shell", **fields}) for fields in jobs]
        group = WorkflowSpec(name=workflow) if workflow else None
        return await self.engine.submit(specs, group)

    async def state(self, job: int) -> str | None:
        """The job's state, as the log tells it; the store's is compared at the end."""
        moves = await self.moves(job)
        return moves[-1][1] if moves else None

    async def states(self, *jobs: int) -> list[str | None]:
        return [await self.state(job) for job in jobs]

    async def moves(self, job: int) -> list[tuple[str | None, str | None]]:
        """Every transition of a job, oldest first."""
        return [
            (_name(e.source), _name(e.to))
            for e in await self.events(job)
            if e.kind == EventKind.JOB
        ]

    async def events(self, job: int | None = None) -> list[Event]:
        """The log, or a job's part of it."""
        if job is not None:
            number = job
            return await self.store.read(lambda tx: tx.log.of_job(number))
        return await self.store.read(lambda tx: tx.log.read(0, 1_000_000))

    async def record(self, job: int) -> JobRecord:
        """The whole row of a job."""
        snapshot = await self.snapshot()
        return next(row for row in snapshot.jobs if row.facts.id == job)

    async def snapshot(self) -> Snapshot:
        return await self.store.snapshot()

    # Workers

    async def agent(
        self,
        name: str = "worker-1",
        slots: int = 100,
        metadata: Mapping[str, object] | None = None,
        takeover: bool = False,
    ) -> Agent:
        """Enrol a worker; it does only what the test tells it."""
        agent = Agent(self.engine, name)
        await agent.enrol(slots=slots, metadata=metadata or {}, takeover=takeover)
        return agent

    async def enrol(self, name: str, **fields: Any) -> tuple[int, int]:
        enrolled = await self.engine.workers.enrol(Enrolment(name=name, **fields))
        return enrolled.worker, enrolled.incarnation

    async def worker(self, worker: int) -> Worker:
        """The stored row of a worker."""
        rows = await self.store.read(lambda tx: tx.workers.all())
        return next(row for row in rows if row.id == worker)

    async def order(self, agent: Agent, count: int) -> Sequence[int]:
        """The jobs in the order in which one worker gets them, one by one."""
        taken: list[int] = []
        for _ in range(count):
            jobs = await agent.take()
            taken += [job.job for job in jobs]
        return taken


def _name(code: int) -> str | None:
    state = STATE_BY_CODE[code]
    return None if state is None else state.value
