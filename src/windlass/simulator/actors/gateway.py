"""How a simulated agent reaches the servers: over the simulated network, any of them."""

from collections.abc import Sequence
from typing import Any

from windlass.domain.values.errors import Conflict, NotFound, Unreachable, WindlassError
from windlass.messages.enrolment import EnrolReply, EnrolRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import SyncReply, SyncRequest
from windlass.operations.attempts import AttemptSteps
from windlass.ports.gateway import Holder
from windlass.simulator.actors.server import Server
from windlass.simulator.world.network import Network, Request
from windlass.simulator.world.world import World
from windlass.worker.agent.direct import enrol_with
from windlass.worker.attempt.job_socket import Submit

ENROL_PATIENCE_MS = 2_500
STEP_PATIENCE_MS = 3_000
SYNC_PATIENCE_MS = 60_000  # the sync loop gives up long before
TEMPORARY = ("store_unavailable", "overloaded", "unreachable")


class SimulatedGateway:
    """Implements `AgentGateway`; counts and checks what servers answer."""

    def __init__(
        self, world: World, network: Network, servers: Sequence[Server], name: str
    ) -> None:
        self._world = world
        self._network = network
        self._servers = servers
        self._name = name

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
            lambda engine: AttemptSteps(engine).step(holder, request), STEP_PATIENCE_MS
        )
        return reply

    async def leave(self, worker: int, incarnation: int) -> None:
        """Says that this incarnation has ended."""
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
