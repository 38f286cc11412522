"""A simulated worker: the production agent core and attempts over simulated processes.

Only what lies below the core's ports is simulated: the network, the keeper with its
processes, and the faults. A paused agent (SIGSTOP) runs nothing; its keeper goes on.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from pathlib import Path

from windlass.messages.enrolment import EnrolReply, EnrolRequest, Stopped
from windlass.messages.sync import Finished
from windlass.simulator.actors.durable import Memory
from windlass.simulator.actors.gateway import NoFiles, NoSocket, SimulatedGateway
from windlass.simulator.actors.jobs import TASKS, FaultyStarter, SimulatedExecutor, Traits
from windlass.simulator.actors.processes import ProcessRegistry, SimulatedKeeper
from windlass.simulator.actors.server import Server
from windlass.simulator.world.loop import OWNER, SimulatedProcess
from windlass.simulator.world.network import Network
from windlass.simulator.world.world import SeededChance, World
from windlass.worker.attempt.context import AgentContext, IndexUse
from windlass.worker.attempt.records import Records
from windlass.worker.attempt.secrets import Secrets
from windlass.worker.attempt.starter import AttemptStarter
from windlass.worker.core.agent_core import AgentCore
from windlass.worker.core.deadline import Deadline
from windlass.worker.core.ports import Ports
from windlass.worker.isolation.modes import Modes
from windlass.worker.keeper.scratch import Scratch

DRAIN_LIMIT_MS = 10_000
SCRATCH = Path("/simulated")


class SimulatedMachine:
    """Implements `Machine` for one agent process, with simulated processes."""

    def __init__(self, agent: "Agent", world: World, registry: ProcessRegistry) -> None:
        self.process = SimulatedProcess()
        self.context = Context()
        self.context.run(OWNER.set, self.process)
        self.proven = False  # nothing of an older agent process is left
        self.epoch = 0
        self._agent = agent
        self._world = world
        self._registry = registry
        self._index_use = IndexUse()
        self.keeper = self._start_keeper()

    def _start_keeper(self) -> SimulatedKeeper:
        return SimulatedKeeper(
            self._world, self._registry, self._agent.traits.name, self.context.copy()
        )

    def introduce(self) -> EnrolRequest:
        traits = self._agent.traits
        return EnrolRequest(
            name=traits.name, slots=traits.slots, metadata=traits.metadata,
            takeover=self.proven, replaces=self._agent.newest, stopped=self._agent.stopped,
        )  # fmt: skip

    def set_deadline(self, soft: float, hard: float) -> None:
        self.keeper.set_deadline(soft, hard)

    def begin(self, reply: EnrolReply, deadline: Deadline) -> FaultyStarter:
        agent, world = self._agent, self._world
        agent.worker, agent.newest = reply.worker, reply.incarnation
        agent.stopped = None
        self.epoch = max(self.epoch, reply.epoch)
        self.keeper.grace_ms = reply.term_grace_ms
        context = AgentContext(
            Records(world.clock), NoFiles(agent.gateway), self.keeper,
            Scratch(SCRATCH, _remove), world.clock, reply.worker, reply.incarnation,
            reply.log_limit, reply.term_grace_ms, deadline, Secrets(),
            NoSocket(), self._index_use, Modes(),
        )  # fmt: skip
        executors = {
            task: SimulatedExecutor(task, world, agent.traits, agent.memory, self._die_soon)
            for task in TASKS
        }
        return FaultyStarter(world, AttemptStarter(context, executors), agent.traits)

    def end_incarnation(self) -> None:
        """Kills everything that the incarnation started."""
        self._world.faults["incarnation_ended"] += 1
        self.keeper.kill_all()
        self.keeper = self._start_keeper()
        self.proven = True

    def note_stop(self, finished: Sequence[Finished]) -> None:
        """Notes it in the agent's state directory."""
        self._agent.stopped = Stopped(self._agent.newest, tuple(finished))

    def _die_soon(self) -> None:
        """Kills the agent soon, on behalf of a job that takes it down."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._world.between(1, 500) / 1000, self._die)

    def _die(self) -> None:
        self._agent.crash(keeper_lingers=False)
        self._world.after(self._world.between(500, 8_000), self._agent.start, True)


class Agent:
    """One worker: an agent process that comes and goes, and its keeper."""

    def __init__(
        self, world: World, network: Network, servers: list[Server], registry: ProcessRegistry,
        traits: Traits, memory: Memory | None = None,
    ) -> None:  # fmt: skip
        self.traits = traits
        self.memory = memory or Memory(world)
        self.worker = 0
        self.newest = 0  # the newest incarnation that its state directory records
        self.stopped: Stopped | None = None  # what its state directory says of the last stop
        self._world = world
        self._registry = registry
        self.gateway = SimulatedGateway(world, network, servers, traits.name)
        self._machine = SimulatedMachine(self, world, registry)
        self._core: AgentCore | None = None

    def start(self, takeover: bool = False) -> None:
        """Starts the agent's process; with `takeover` it kills what the previous one left."""
        if self._core is not None:
            return
        if takeover:
            self._machine.keeper.kill_all()
        machine = self._machine = SimulatedMachine(self, self._world, self._registry)
        machine.proven = takeover
        world = self._world
        ports = Ports(self.gateway, world.clock, SeededChance(world.chance), world.loop.time)
        core = AgentCore(ports, machine, self.traits.slots, DRAIN_LIMIT_MS, self.traits.careful)
        self._core = core
        task = machine.context.run(world.loop.create_task, core.run())
        task.add_done_callback(lambda _: self._exited(core), context=Context())

    def drain(self) -> None:
        """Sends SIGTERM."""
        if self._core is not None:
            self._core.drain()

    def crash(self, keeper_lingers: bool) -> None:
        """Kills the agent (kill −9); its keeper notices, or lives on until its deadline."""
        if self._core is None:
            return
        self._core = None
        machine = self._machine
        if keeper_lingers:
            machine.keeper.hang()
        else:
            machine.keeper.kill_all()
        machine.process.dead = True
        machine.process.resume()
        for task in self._world.loop.tasks_of(machine.process):
            task.cancel()

    def pause(self) -> None:
        """Sends SIGSTOP."""
        self._machine.process.paused = self._core is not None

    def resume(self) -> None:
        """Sends SIGCONT."""
        self._machine.process.resume()

    def _exited(self, core: AgentCore) -> None:
        """Restarts the agent after it exited by itself, as a service manager does."""
        if self._core is core:
            self._core = None
            self._machine.keeper.kill_all()
            self._world.after(self._world.between(500, 8_000), self.start, True)


def _remove(path: Path) -> None:
    """Does nothing: the simulation has no disk."""
    del path
