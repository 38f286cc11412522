"""A simulated worker: the production agent core and attempts over simulated processes.

It calls any of the servers over the simulated network.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windlass.domain.values.errors import Conflict, NotFound, Unreachable, WindlassError
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import (
    EnrolReply,
    EnrolRequest,
    Finished,
    Stopped,
    SyncReply,
    SyncRequest,
)
from windlass.operations.attempts import take_step
from windlass.ports.gateway import Holder
from windlass.simulator.jobs import TASKS, FaultyStarter, Memory, SimulatedExecutor, Traits
from windlass.simulator.network import Network, Request
from windlass.simulator.processes import ProcessRegistry, SimulatedKeeper
from windlass.simulator.server import Server
from windlass.simulator.virtual_loop import OWNER, SimulatedProcess
from windlass.simulator.world import SeededChance, World
from windlass.worker.agent.direct import enrol_with
from windlass.worker.attempt.context import AgentContext, IndexUse
from windlass.worker.attempt.job_socket import Submit
from windlass.worker.attempt.records import Records
from windlass.worker.attempt.secrets import Secrets
from windlass.worker.attempt.starter import AttemptStarter
from windlass.worker.core.agent_core import AgentCore
from windlass.worker.core.ports import Deadline, Ports
from windlass.worker.isolation.modes import Modes
from windlass.worker.keeper.scratch import Scratch

ENROL_PATIENCE_MS = 2_500
STEP_PATIENCE_MS = 3_000
SYNC_PATIENCE_MS = 60_000  # the sync loop gives up much earlier
TEMPORARY = ("store_unavailable", "overloaded", "unreachable")

DRAIN_LIMIT_MS = 10_000
SCRATCH = Path("/simulated")


@dataclass(eq=False)
class SimulatedGateway:
    """Implements `AgentGateway`; counts and checks what servers answer."""

    _world: World
    _network: Network
    _servers: Sequence[Server]
    _name: str

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        """Begins a new incarnation."""
        reply: EnrolReply = await self._ask(
            lambda engine: enrol_with(engine, request, log_limit=0), ENROL_PATIENCE_MS
        )
        return reply

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        """Syncs with some server."""
        try:
            reply: SyncReply = await self._ask(
                lambda engine: engine.sync(worker, request), request.wait_ms + SYNC_PATIENCE_MS
            )
        except NotFound:
            raise
        except WindlassError as error:
            ended = isinstance(error, Conflict) and error.code == "incarnation_ended"
            if not ended and error.code not in TEMPORARY:
                self._world.found("protocol", f"sync {request.seq} of {self._name}: {error}")
            raise
        if reply.lost:
            self._world.faults["lease_lost"] += len(reply.lost)
        return reply

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        """Stores a step of a function, or begins what it waits for, at some server."""
        reply: StepReply = await self._ask(
            lambda engine: take_step(engine, holder, request), STEP_PATIENCE_MS
        )
        return reply

    async def leave(self, worker: int, incarnation: int) -> None:
        """Reports that this incarnation has ended."""
        await self._ask(lambda engine: engine.workers.leave(worker, incarnation), ENROL_PATIENCE_MS)

    async def _ask(self, request: Request, patience_ms: int) -> Any:
        server = self._world.chance.choice(self._servers)
        return await self._network.ask(self._name, server, request, patience_ms)


class NoFiles:
    """Implements `AttemptGateway` for simulated jobs, which write only their steps."""

    def __init__(self, gateway: SimulatedGateway) -> None:
        self.step = gateway.step

    async def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Unreachable("simulated: jobs have no files")

    append_log = end_log = progress = measured = _refuse
    put_artifact = get_artifact = submit = stack = _refuse


class NoSocket:
    """Implements `SubmitSocket`: no program submits jobs."""

    path = None

    def admit(self, key: tuple[int, int], submit: Submit) -> dict[str, str]:
        del key, submit
        return {}

    def dismiss(self, key: tuple[int, int]) -> None:
        """Does nothing: no attempt has a socket here."""


class SimulatedMachine:
    """Implements `Machine` for one agent process, with simulated processes."""

    def __init__(self, agent: "Agent", world: World, registry: ProcessRegistry) -> None:
        self.process = SimulatedProcess()
        self.context = Context()
        self.context.run(OWNER.set, self.process)
        self.proven = False  # no process of an older agent is left
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
        """Records it in the agent's state directory."""
        self._agent.stopped = Stopped(self._agent.newest, tuple(finished))

    def _die_soon(self) -> None:
        """Kills the agent soon, as a job does that takes it down."""
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
        self.stopped: Stopped | None = None  # the last stop, as its state directory records it
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
        """Kills the agent (kill −9); its keeper notices, or runs until its deadline."""
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
