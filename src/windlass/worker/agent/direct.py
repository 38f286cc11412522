"""Connects a worker directly to an engine in the same process, without a server."""

from collections.abc import Callable

from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import EnrolReply, EnrolRequest, SyncReply, SyncRequest
from windlass.operations.attempts import add_children, take_step
from windlass.ports.gateway import FileGateway, Holder


class DirectGateway:
    """Implements `Gateway`."""

    def __init__(self, engine: Engine, files: FileGateway, log_limit: int | None = None) -> None:
        self.woken: Callable[[], None] | None = None  # called when a job may come soon
        self._engine = engine
        self._log_limit = engine.config.log_limit if log_limit is None else log_limit
        self.append_log = files.append_log
        self.end_log = files.end_log
        self.progress = files.progress
        self.measured = files.measured
        self.put_artifact = files.put_artifact
        self.get_artifact = files.get_artifact
        self.stack = files.stack

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        """Begins a new incarnation."""
        return await enrol_with(self._engine, request, self._log_limit)

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        """Syncs with the engine."""
        return await self._engine.sync(worker, request, self.woken)

    async def leave(self, worker: int, incarnation: int) -> None:
        """Reports that this incarnation has ended."""
        await self._engine.workers.leave(worker, incarnation)

    async def submit(self, holder: Holder, request: SubmitRequest) -> SubmitReply:
        """Submits jobs into the workflow of the running one."""
        return await add_children(self._engine, holder, request)

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins its wait."""
        return await take_step(self._engine, holder, request)

    def interrupt(self, worker: int) -> None:
        """Makes the engine answer the worker's open sync now."""
        self._engine.waiting_syncs.end(worker)

    async def close(self) -> None:
        """Leaves the engine open; its owner closes it."""


async def enrol_with(engine: Engine, request: EnrolRequest, log_limit: int) -> EnrolReply:
    """Enrols a worker and returns the rules it has to follow."""
    enrolled = await engine.workers.enrol(
        Enrolment(
            name=request.name,
            slots=request.slots,
            metadata=request.metadata,
            takeover=request.takeover,
            replaces=request.replaces,
            stopped=request.stopped,
        )
    )
    return enrolled.reply(engine.config, log_limit)
