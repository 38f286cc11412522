"""One simulated run: a phase with faults, then a quiet one in which everything must end."""

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import structlog
from msgspec import Struct

from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import ENDED
from windlass.domain.matching.workers import WorkerStatus
from windlass.engine.engine import Engine
from windlass.engine.verify import Violation, verify
from windlass.simulator.agent import Agent
from windlass.simulator.client import QUEUES, Client
from windlass.simulator.jobs import Memory
from windlass.simulator.network import Network, Request
from windlass.simulator.processes import ProcessRegistry
from windlass.simulator.scenario import Scenario, Trouble, draw
from windlass.simulator.server import Server, Stores
from windlass.simulator.world import World
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx

CHUNK = 5_000

CALM_LIMIT_MS = 900_000  # how long the backlog may take to drain
LOOK_MS = 4_000
HOUR_MS = 3_600_000
MAX_S = 20_000  # of virtual time; a longer run hangs
# In memory, so that a simulated crash costs no real writes; `mkdtemp` makes the folder.
MEMORY_DISK = Path("/dev/shm")  # nosec B108


def find_leftovers(snapshot: Snapshot) -> list[Violation]:
    """Checks L1–L4, L6, L7: once faults have stopped, every job and workflow ends."""
    found: list[Violation] = []
    places = (
        ("L1", "ready", snapshot.ready),
        ("L1", "parked", snapshot.parked),
        ("L7", "due", snapshot.due),
        ("L3", "waits", snapshot.waits),
        ("L2", "leases", snapshot.leases),
    )
    for invariant, place, rows in places:
        found += [Violation(invariant, f"still in {place}: {row}", row.job) for row in rows]
    for cascade in snapshot.cascades:
        message = f"a cascade was never finished: {cascade}"
        found.append(Violation("L3", message, cascade.job or 0))
    for record in snapshot.jobs:
        if record.facts.is_open:
            found.append(Violation("L7", "never ended", record.facts.id))
    for workflow in snapshot.workflows:
        if workflow.state not in ENDED:
            found.append(Violation("L4", f"workflow {workflow.id} never ended: {workflow}"))
    return found


def find_missing(snapshot: Snapshot, acknowledged: Iterable[int]) -> list[Violation]:
    """Checks S1: every acknowledged job can be read."""
    there = {record.facts.id for record in snapshot.jobs}
    lost = sorted(set(acknowledged) - there)
    return [Violation("S1", "was acknowledged and is gone", job) for job in lost]


async def hash_log(tx: ReadTx) -> tuple[int, str]:
    """Returns how many events there are, and a hash of all their columns."""
    digest = hashlib.sha256()
    count = after = 0
    while chunk := await tx.log.read(after, CHUNK):
        for event in chunk:
            digest.update(repr((*event[:2], int(event.kind), *event[3:])).encode())
        count += len(chunk)
        after = chunk[-1].seq
    return count, digest.hexdigest()


class Result(Struct, frozen=True):
    """The result of one seed; equal seeds have equal hashes of their event logs."""

    seed: int
    store: str
    engines: int
    jobs: int
    events: int
    virtual_ms: int
    faults: dict[str, int]
    violations: list[Violation]
    log_hash: str


def simulate(seed: int, jobs: int | None = None) -> Result:
    """Runs one seed to its end."""
    return run_scenario(seed, draw(seed, jobs))


def run_scenario(seed: int, scenario: Scenario) -> Result:
    """Runs a scenario; the seed decides everything else."""
    world = World(seed)
    disk = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="windlass-", dir=disk) as folder, _quiet():
        stores = Stores(world, scenario.store, scenario.engines, Path(folder))
        try:
            play = asyncio.wait_for(_Run(world, scenario, stores).play(seed), MAX_S)
            return world.loop.run_until_complete(play)
        except TimeoutError as error:
            raise RuntimeError(f"seed {seed} did not end in {MAX_S} virtual seconds") from error
        finally:
            end_all_tasks(world)
            world.loop.run_until_complete(stores.view.close())
            world.loop.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the engine's log, which would show real times and which nobody reads."""
    before = structlog.get_config()
    nothing = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=nothing)
    try:
        yield
    finally:
        structlog.configure(**before)


def end_all_tasks(world: World) -> None:
    """Cancels the remaining tasks, and waits for them."""
    tasks = world.loop.open_tasks()
    for task in tasks:
        task.cancel()
    if tasks:
        world.loop.run_until_complete(asyncio.wait(tasks))


class _Run:
    """The parts of one run."""

    def __init__(self, world: World, scenario: Scenario, stores: Stores) -> None:
        self._world = world
        self._scenario = scenario
        self._stores = stores
        network = self._network = Network(world, scenario.weather)
        self._servers = servers = [
            Server(
                world, f"server-{number}", stores.opener(f"s{number}"), scenario.store_faults,
                stores.survives_engine,
            )
            for number in range(1, scenario.engines + 1)
        ]  # fmt: skip
        processes, memory = ProcessRegistry(world), Memory(world)
        self._agents = [
            Agent(world, network, servers, processes, traits, memory) for traits in scenario.workers
        ]
        share = -(-scenario.jobs // scenario.clients)
        self._clients = [
            Client(world, network, servers, stores, f"client-{number}", share, scenario.durable)
            for number in range(1, scenario.clients + 1)
        ]
        self._operator = Client(world, network, servers, stores, "operator", 0)

    async def play(self, seed: int) -> Result:
        """Runs the faults, then a quiet phase, then the checks."""
        for server in self._servers:
            await server.start()
        for agent in self._agents:
            self._world.after(self._world.between(0, 2_000), agent.start)
        Trouble(
            self._world, self._scenario, self._network, self._servers, self._agents, self._operator
        ).plan()
        until = self._scenario.trouble_ms / 1000
        programs = [self._world.spawn(client.run(until)) for client in self._clients]
        if self._scenario.retrying:
            programs.append(self._world.spawn(self._operator.keep_retrying(until)))
        await self._world.clock.sleep_ms(self._scenario.trouble_ms)
        self._calm_down()
        await asyncio.gather(*programs)
        await self._settle()
        await self._end()
        return await self._judge(seed)

    def _calm_down(self) -> None:
        self._world.calm = True
        self._network.heal()
        for server in self._servers:
            server.restart()
        for agent in self._agents:
            agent.resume()
        # The first worker can run everything; others may stay away for ever.
        for agent in self._agents[: self._world.between(1, len(self._agents))]:
            agent.start(takeover=True)

    async def _settle(self) -> None:
        """Lets the operator release blocked jobs until all jobs have ended."""
        if self._scenario.slow_operator:
            await self._world.clock.sleep_ms(HOUR_MS)
        end = self._world.loop.time() + CALM_LIMIT_MS / 1000
        while self._world.loop.time() < end:
            snapshot = await self._stores.view.snapshot()
            if not any(row.facts.is_open for row in snapshot.jobs) and not snapshot.cascades:
                return
            await self._operate(snapshot)
            if any(row.state == State.SUSPENDED.code for row in snapshot.due):
                await self._operator.send()
            await self._world.clock.sleep_ms(LOOK_MS)

    async def _operate(self, snapshot: Snapshot) -> None:
        """Resumes queues, enables workers and approves jobs that wait for an operator."""
        first = self._agents[0].traits.name
        steps: list[Request] = [
            partial(_resume, queue=row.name)
            for row in snapshot.queues
            if row.paused and row.name in QUEUES
        ]
        steps += [
            partial(_enable, worker=row.id)
            for row in snapshot.workers
            if row.name == first and row.status in (WorkerStatus.DRAINING, WorkerStatus.DISABLED)
        ]
        steps += [partial(_unblock, job=w.job) for w in snapshot.waits if w.needs_operator]
        for step in steps:
            await self._operator.ask(step)

    async def _end(self) -> None:
        for agent in self._agents:
            agent.crash(keeper_lingers=False)
        for server in self._servers:
            await server.stop()

    async def _judge(self, seed: int) -> Result:
        view, scenario = self._stores.view, self._scenario
        snapshot = await view.snapshot()
        acknowledged = [job for client in self._clients for job in client.acknowledged]
        violations = [
            *self._world.violations,
            *await verify(view, self._world.config),
            *find_leftovers(snapshot),
            *find_missing(snapshot, acknowledged),
        ]
        events, digest = await view.read(hash_log)
        return Result(
            seed, scenario.store, scenario.engines, len(snapshot.jobs), events,
            round(self._world.loop.time() * 1000), dict(sorted(self._world.faults.items())),
            violations, digest,
        )  # fmt: skip


async def _resume(engine: Engine, queue: str) -> None:
    await engine.queues.resume(queue)


async def _enable(engine: Engine, worker: int) -> None:
    await engine.workers.set_status(worker, WorkerStatus.ONLINE)


async def _unblock(engine: Engine, job: int) -> None:
    await engine.jobs.unblock(job)
