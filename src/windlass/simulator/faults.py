"""Faults at planned moments: crashes, pauses, partitions, outages, drains."""

from windlass.domain.matching.workers import WorkerStatus
from windlass.simulator.agent import Agent
from windlass.simulator.client import Client
from windlass.simulator.network import Network
from windlass.simulator.scenario import Scenario
from windlass.simulator.server import Server
from windlass.simulator.world import World


class Trouble:
    """Plans a scenario's faults on the timeline."""

    def __init__(
        self, world: World, scenario: Scenario, network: Network, servers: list[Server],
        agents: list[Agent], operator: Client,
    ) -> None:  # fmt: skip
        self._world = world
        self._scenario = scenario
        self._network = network
        self._servers = servers
        self._agents = agents
        self._operator = operator

    def plan(self) -> None:
        """Plans every fault at a moment of the troubled phase."""
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
