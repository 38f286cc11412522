"""What the agent core needs from outside: a server, time, and a machine that runs attempts.

The machine is told until when they may run, the `Deadline`.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from windlass.domain.config import LEASE_MARGIN_MS
from windlass.messages.sync import Assignment, EnrolReply, EnrolRequest, Finished, Released
from windlass.ports.clock import Chance, Clock
from windlass.ports.gateway import AgentGateway

EARLY_S = 0.1
UNANSWERED = "no server answered"

Key = tuple[int, int]  # job, attempt
StopReason = Literal["canceled", "timed_out", "released", "lost"]
Report = Finished | Released


class Rules(NamedTuple):
    """The rules the server gave when the worker enrolled."""

    heartbeat_ms: int
    lease_ms: int
    grace_ms: int


class Deadline:
    """Counts from the sending of the last sync that was answered.

    The server may have recorded that sync up to a third of a heartbeat late, and processes may use
    their whole grace to end: this deadline ends that much earlier than the server's lease. `reason`
    says why it was not extended, for the attempts that it ends.
    """

    def __init__(self, rules: Rules, uptime: Callable[[], float]) -> None:
        self._uptime = uptime
        lasts = rules.lease_ms - rules.heartbeat_ms // 3 - LEASE_MARGIN_MS
        self._hard_s = lasts / 1000
        self._soft_s = (lasts - rules.grace_ms) / 1000
        self._step_s = rules.heartbeat_ms / 10_000
        self._told = 0.0
        self.soft = self.hard = 0.0
        self.unanswered = UNANSWERED  # why syncs are not answered at present

    def extend(self, sent_at: float) -> bool:
        """Counts from an answered sync; returns whether the keeper must be told."""
        self.soft = max(self.soft, sent_at + self._soft_s)
        self.hard = max(self.hard, sent_at + self._hard_s)
        if self.soft - self._told < self._step_s:
            return False
        self._told = self.soft
        return True

    def has_passed(self) -> bool:
        """Returns whether the keeper may have ended what ran."""
        return self.left_s <= 0

    @property
    def left_s(self) -> float:
        """Returns how long jobs may still run, slightly less than the keeper allows."""
        return self.soft - EARLY_S - self._uptime()


class Ports(NamedTuple):
    """The server and time. `uptime` counts seconds, also while the machine sleeps."""

    gateway: AgentGateway
    clock: Clock
    chance: Chance
    uptime: Callable[[], float]


class RunningAttempt(Protocol):
    """An attempt on this worker."""

    @property
    def key(self) -> Key: ...

    @property
    def flushing(self) -> "asyncio.Task[None] | None":
        """Returns the task that still sends the log of an attempt that has ended."""

    def start(self) -> None:
        """Starts it. Its end may be reported before this returns."""

    def stop(self, why: StopReason, message: str | None = None) -> None:
        """Ends it: gently, or at once if the lease is lost."""

    def show_stack(self, request: int) -> None:
        """Tells the server the current stack of its function."""

    def check_time(self, now: float) -> None:
        """Times it out if it is late; `now` is the loop's time."""


AttemptEnded = Callable[[RunningAttempt, Report | None], None]


class Starter(Protocol):
    """Makes the attempts of one incarnation."""

    def reason_to_decline(self, assignment: Assignment) -> str | None:
        """Returns why this worker cannot run a job, or None if it can."""

    def make(self, assignment: Assignment, ended: AttemptEnded) -> RunningAttempt | Report:
        """Makes an attempt to be started, or returns what to report instead.

        `ended` is called once with the report, or with None if the lease is lost.
        """


class Machine(Protocol):
    """Runs the processes of one agent and remembers what its next process needs."""

    @property
    def epoch(self) -> int:
        """Returns the newest epoch of the store that this worker has seen."""

    def introduce(self) -> EnrolRequest:
        """Returns the enrolment request for the current state."""

    def set_deadline(self, soft: float, hard: float) -> None:
        """Ends all processes at these times (see `Deadline`) unless they are extended."""

    def begin(self, reply: EnrolReply, deadline: Deadline) -> Starter:
        """Begins an incarnation; its deadline has been set."""

    def end_incarnation(self) -> None:
        """Kills everything the incarnation started."""

    def note_stop(self, finished: Sequence[Finished]) -> None:
        """Remembers that the incarnation was asked to stop, and what it could not report.

        The next process tells the server, so that the jobs lose no retries.
        """
