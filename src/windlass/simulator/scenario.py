"""Draws a scenario from a seed: the fleet, the work, the faults and their times.

Faults are crashes, pauses, partitions, outages, drains.
"""

import random
from dataclasses import dataclass

from msgspec import Struct

from windlass.domain.matching.indices import indices_key
from windlass.domain.matching.workers import WorkerStatus
from windlass.simulator.agent import Agent
from windlass.simulator.client import Client
from windlass.simulator.jobs import Traits
from windlass.simulator.network import Network, Weather
from windlass.simulator.server import Server, StoreFaults, StoreKind
from windlass.simulator.world import World


class Scenario(Struct, frozen=True, kw_only=True):
    """The plan of one run."""

    store: StoreKind
    engines: int
    workers: tuple[Traits, ...]
    clients: int
    jobs: int
    retrying: bool  # somebody retries failed jobs by hand
    trouble_ms: int  # how long faults occur
    weather: Weather
    store_faults: StoreFaults
    worker_troubles: int  # crashes, pauses, drains
    server_crashes: int
    partitions: int
    outage: bool  # no server is up for longer than a lease lasts
    slow_operator: bool  # jobs that wait for it are blocked for more than an hour
    durable: float = 0.0  # the shares of jobs with steps and waits, and with conditions


def draw(seed: int, jobs: int | None = None) -> Scenario:
    """Returns the scenario of a seed; `jobs` overrides how many are submitted."""
    # A separate generator, so that changing the fleet does not change the weather.
    # Repeatable on purpose: nothing in a simulation is secret.
    chance = random.Random(f"scenario {seed}")  # nosec B311
    store: StoreKind = "sqlite" if chance.random() < 0.35 else "memory"
    engines = 1 if store == "sqlite" else chance.choice((1, 2, 2))
    return Scenario(
        store=store,
        engines=engines,
        workers=_fleet(chance),
        clients=chance.randint(1, 2),
        jobs=jobs or chance.randint(20, 60),
        retrying=chance.random() < 0.4,
        trouble_ms=chance.randint(25_000, 70_000),
        weather=_weather(chance),
        store_faults=_store_faults(chance),
        worker_troubles=chance.randint(0, 5),
        server_crashes=chance.choice((0, 0, 1, 2)),
        partitions=chance.choice((0, 0, 1, 2)),
        outage=chance.random() < 0.15,
        slow_operator=chance.random() < 0.02,
        durable=chance.choice((0.0, 0.3, 0.6)),
    )


def _rate(chance: random.Random, most: float) -> float:
    return chance.choice((0.0, most / 5, most))


def _weather(chance: random.Random) -> Weather:
    return Weather(
        lost=_rate(chance, 0.10),
        reply_lost=_rate(chance, 0.15),
        doubled=_rate(chance, 0.20),
        late=_rate(chance, 0.10),
        late_ms=chance.choice((1_000, 8_000, 40_000)),
        delay_ms=chance.choice((5, 50, 300)),
        hang_up_unnoticed=chance.choice((0.0, 0.3, 1.0)),
    )


def _store_faults(chance: random.Random) -> StoreFaults:
    return StoreFaults(
        fails_before=_rate(chance, 0.05),
        fails_after=_rate(chance, 0.05),
        dies_after=_rate(chance, 0.005),
        loses_news=_rate(chance, 0.5),
        latency_ms=chance.choice((0, 0, 5, 40)),
    )


def _fleet(chance: random.Random) -> tuple[Traits, ...]:
    workers = []
    for number in range(chance.randint(2, 4)):
        cpus = chance.randint(2, 4)
        metadata: dict[str, object] = {"os": "linux", "system:cpus": cpus}
        metadata[indices_key("cpus")] = [str(cpu) for cpu in range(cpus)]
        if number == 0 or chance.random() < 0.4:
            metadata["gpu"] = True  # the first worker can run everything
        if number and chance.random() < 0.3:
            metadata["tasks_denylist"] = ["test"]
        workers.append(
            Traits(
                name=f"worker-{number + 1}",
                slots=chance.randint(1, 3),
                metadata=metadata,
                careful=chance.choice((False, False, True, True)),
                declines=_rate(chance, 0.1),
                fails=_rate(chance, 0.3),
                forgets_timeouts=_rate(chance, 0.5),
                dies_with_job=_rate(chance, 0.02),
            )
        )
    return tuple(workers)


@dataclass(eq=False)
class Trouble:
    """Plans a scenario's faults on the timeline."""

    _world: World
    _scenario: Scenario
    _network: Network
    _servers: list[Server]
    _agents: list[Agent]
    _operator: Client

    def plan(self) -> None:
        """Plans every fault at some time of the phase with faults."""
        troubles = (
            self._crash_agent, self._crash_agent, self._pause_agent, self._pause_agent,
            self._drain_agent, self._stop_agent,
        )  # fmt: skip
        for _ in range(self._scenario.worker_troubles):
            self._at_some_time(self._world.chance.choice(troubles))
        for _ in range(self._scenario.server_crashes):
            self._at_some_time(self._crash_server)
        for _ in range(self._scenario.partitions):
            self._at_some_time(self._partition)
        if self._scenario.outage:
            self._at_some_time(self._outage)

    def _at_some_time(self, fault: object) -> None:
        at = self._world.between(1_000, self._scenario.trouble_ms)
        self._world.after(at, self._strike, fault)

    def _strike(self, fault: object) -> None:
        if not self._world.calm and callable(fault):
            fault()

    def _lease_ms(self) -> int:
        return self._world.config.heartbeat_timeout_ms

    def _crash_agent(self) -> None:
        self._world.faults["agent_killed"] += 1
        agent = self._world.chance.choice(self._agents)
        agent.crash(keeper_lingers=self._world.chance.random() < 0.4)
        back = self._world.between(100, 2 * self._lease_ms())
        if self._world.chance.random() < 0.8:
            self._world.after(back, agent.start, self._world.chance.random() < 0.6)

    def _pause_agent(self) -> None:
        self._world.faults["agent_paused"] += 1
        agent = self._world.chance.choice(self._agents)
        agent.pause()
        self._world.after(self._world.between(1_000, 2 * self._lease_ms()), agent.resume)

    def _stop_agent(self) -> None:
        self._world.faults["agent_stopped"] += 1
        self._world.chance.choice(self._agents).drain()

    def _drain_agent(self) -> None:
        agent = self._world.chance.choice(self._agents)
        if not agent.worker:
            return
        self._world.faults["agent_drained"] += 1
        status = self._world.chance.choice((WorkerStatus.DRAINING, WorkerStatus.DISABLED))
        worker = agent.worker
        self._world.spawn(
            self._operator.ask(lambda engine: engine.workers.set_status(worker, status))
        )

    def _crash_server(self) -> None:
        self._world.faults["server_killed"] += 1
        server = self._world.chance.choice(self._servers)
        server.crash()
        self._world.after(self._world.between(200, 15_000), server.restart)

    def _outage(self) -> None:
        self._world.faults["outage"] += 1
        length = self._world.between(self._lease_ms(), 2 * self._lease_ms())
        for server in self._servers:
            server.crash()
            self._world.after(length, server.restart)

    def _partition(self) -> None:
        agent = self._world.chance.choice(self._agents)
        server = self._world.chance.choice(self._servers)
        ends = [agent.traits.name, server.name]
        self._world.chance.shuffle(ends)
        self._network.cut(ends[0], ends[1], self._world.between(1_000, 2 * self._lease_ms()))
