"""What the agent core needs from outside: a server, time, and a machine that runs attempts."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from windlass.messages.enrolment import EnrolReply, EnrolRequest
from windlass.messages.sync import Assignment, Finished, Released
from windlass.ports.clock import Chance, Clock
from windlass.ports.gateway import AgentGateway
from windlass.worker.core.sync_loop import Deadline

Key = tuple[int, int]  # job, attempt
StopReason = Literal["canceled", "timed_out", "released", "lost"]
Report = Finished | Released


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
        ...

    def start(self) -> None:
        """Starts it. Its end may be reported before this returns."""
        ...

    def stop(self, why: StopReason, message: str | None = None) -> None:
        """Ends it: gently, or at once if the lease is lost."""
        ...

    def show_stack(self, request: int) -> None:
        """Tells the server the current stack of its function."""
        ...

    def check_time(self, now: float) -> None:
        """Times it out if it is late; `now` is the loop's time."""
        ...


AttemptEnded = Callable[[RunningAttempt, Report | None], None]


class Starter(Protocol):
    """Makes the attempts of one incarnation."""

    def reason_to_decline(self, assignment: Assignment) -> str | None:
        """Returns why this worker cannot run a job, or None if it can."""
        ...

    def make(self, assignment: Assignment, ended: AttemptEnded) -> RunningAttempt | Report:
        """Makes an attempt to be started, or returns what to report instead.

        `ended` is called once with the report, or with None if the lease is lost.
        """
        ...


class Machine(Protocol):
    """Runs the processes of one agent and remembers what its next process needs."""

    @property
    def epoch(self) -> int:
        """Returns the newest epoch of the store that this worker has seen."""
        ...

    def introduce(self) -> EnrolRequest:
        """Returns the enrolment request for the current state."""
        ...

    def set_deadline(self, soft: float, hard: float) -> None:
        """Ends all processes at these times (see `Deadline`) unless they are extended."""
        ...

    def begin(self, reply: EnrolReply, deadline: Deadline) -> Starter:
        """Begins an incarnation; its deadline has been set."""
        ...

    def end_incarnation(self) -> None:
        """Kills everything the incarnation started."""
        ...

    def note_stop(self, finished: Sequence[Finished]) -> None:
        """Remembers that the incarnation was asked to stop, and what it could not report.

        The next process tells the server, so that the jobs lose no retries.
        """
        ...
