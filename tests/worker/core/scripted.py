"""A server and a machine that do what a test says, for the agent core in virtual time."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.messages.sync import (
    Assignment,
    EnrolReply,
    EnrolRequest,
    Finished,
    SyncReply,
    SyncRequest,
)
from windlass.ports.loop_time import pass_time
from windlass.simulator.world import VirtualClock
from windlass.worker.core.agent_core import AgentCore
from windlass.worker.core.ports import AttemptEnded, Deadline, Ports, Report, StopReason

HEARTBEAT_MS = 5_000
LEASE_MS = 25_000
GRACE_MS = 2_000
DRAIN_LIMIT_MS = 20_000


class EvenChance:
    """Draws the same number every time."""

    def fraction(self) -> float:
        return 0.5


class ScriptedAttempt:
    """An attempt that ends when it is stopped, or when a test ends it."""

    flushing: "asyncio.Task[None] | None" = None

    def __init__(self, assignment: Assignment, ended: AttemptEnded) -> None:
        self.key = assignment.job, assignment.attempt
        self.started = 0
        self.stops: list[tuple[StopReason, str | None]] = []
        self.checked: list[float] = []
        self.asked: list[int] = []
        self._ended = ended

    def start(self) -> None:
        self.started += 1

    def stop(self, why: StopReason, message: str | None = None) -> None:
        self.stops.append((why, message))

    def show_stack(self, request: int) -> None:
        self.asked.append(request)

    def check_time(self, now: float) -> None:
        self.checked.append(now)

    def end(self, report: Report | None) -> None:
        self._ended(self, report)

    def complete(self) -> None:
        self.end(Finished(*self.key))


class ScriptedStarter:
    """Makes scripted attempts; `declines` and `instead` are what a test wants."""

    def __init__(self) -> None:
        self.attempts: list[ScriptedAttempt] = []
        self.declines: str | None = None
        self.instead: Report | None = None

    def reason_to_decline(self, assignment: Assignment) -> str | None:
        return self.declines

    def make(self, assignment: Assignment, ended: AttemptEnded) -> "ScriptedAttempt | Report":
        if self.instead is not None:
            return self.instead
        attempt = ScriptedAttempt(assignment, ended)
        self.attempts.append(attempt)
        return attempt


class ScriptedMachine:
    """Implements `Machine`; notes what it is told."""

    def __init__(self) -> None:
        self.epoch = 0
        self.starter = ScriptedStarter()
        self.deadlines: list[tuple[float, float]] = []
        self.ended = 0
        self.stops: list[tuple[Finished, ...]] = []

    def introduce(self) -> EnrolRequest:
        return EnrolRequest(name="w")

    def set_deadline(self, soft: float, hard: float) -> None:
        self.deadlines.append((soft, hard))

    def begin(self, reply: EnrolReply, deadline: Deadline) -> ScriptedStarter:
        self.epoch = max(self.epoch, reply.epoch)
        return self.starter

    def end_incarnation(self) -> None:
        self.ended += 1

    def note_stop(self, finished: Sequence[Finished]) -> None:
        self.stops.append(tuple(finished))


class ScriptedGateway:
    """Answers syncs with `answer`; without one it waits as long as it was asked to."""

    def __init__(self) -> None:
        self.enrolments: list[float] = []
        self.syncs: list[SyncRequest] = []
        self.left: list[int] = []
        self.epoch = 0
        self.status = "idle"
        self.hangs = False
        self.refusal: WindlassError | None = None
        self.answer: Callable[[SyncRequest], SyncReply] | None = None

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        if self.refusal is not None:
            raise self.refusal
        self.enrolments.append(asyncio.get_running_loop().time())
        return EnrolReply(
            worker=1, incarnation=len(self.enrolments), status=self.status,
            heartbeat_interval_ms=HEARTBEAT_MS, lease_ms=LEASE_MS, term_grace_ms=GRACE_MS,
            log_limit=0, epoch=self.epoch, drain_limit_ms=DRAIN_LIMIT_MS,
        )  # fmt: skip

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        self.syncs.append(request)
        if self.hangs:
            await pass_time(3_600)
        if self.answer is not None:
            await pass_time(0.01)
            return self.answer(request)
        await pass_time(0.01 + request.wait_ms / 1000)
        return SyncReply(epoch=self.epoch)

    async def leave(self, worker: int, incarnation: int) -> None:
        self.left.append(incarnation)


def make_core(
    gateway: ScriptedGateway, machine: ScriptedMachine, slots: int = 1, **options: Any
) -> AgentCore:
    """An agent core; to be called in the loop."""
    loop = asyncio.get_running_loop()
    ports = Ports(gateway, VirtualClock(loop), EvenChance(), loop.time)
    return AgentCore(ports, machine, slots, **options)


def assignment(job: int, state: str = "running", attempt: int = 1) -> Assignment:
    return Assignment(job, attempt, job, state, None, None, msgspec.Raw(b"{}"))
