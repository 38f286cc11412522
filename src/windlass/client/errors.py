"""Errors raised while waiting for jobs and workflows."""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.lifecycle.failures import ExceptionInfo
from windlass.domain.values.errors import WaitTimeout, WindlassError, shorten
from windlass.messages.jobs import Job, SubmitReply
from windlass.messages.workflows import Workflow

MAX_NAMED = 5  # jobs in one message
MAX_CHARACTERS = 200  # characters of an exception in `repr`


class RemoteTraceback(Exception):
    """Shows where a function raised, on its worker, above the error of whoever waits for it."""

    def __init__(self, exception: ExceptionInfo) -> None:
        super().__init__(exception)
        self.exception = exception

    def __str__(self) -> str:
        parts: list[str] = []
        shown: ExceptionInfo | None = self.exception
        while shown is not None:
            parts.append(shown.traceback or f"{shown.type}: {shown.message}\n")
            shown = shown.cause
        return "\n" + "\nThis led to:\n\n".join(reversed(parts))


class Delivery(Protocol):
    """What becomes of a submission that is delivered later."""

    def reply(self) -> SubmitReply:
        """Returns the server's answer; raises `Conflict` while there is none."""

    async def wait(self) -> None:
        """Returns once the server has answered; raises `Conflict` if it refused."""


class Spooled(WindlassError):
    """No server took a submission, which waits in a file and is delivered later.

    Clients make a handle of the `delivery`; only calls that return ids raise this.
    """

    code = "spooled"

    def __init__(self, delivery: Delivery) -> None:
        super().__init__("no server took this; it waits in the spool, to be delivered later")
        self.delivery = delivery


class JobFailed(WindlassError):
    """A job ended without a result.

    `job` has all its details. If its function raised, `exception` has type, message, traceback and
    cause. An aborted job never ran: `origin` is the failed job it depends on, directly or
    indirectly, and `exception` is the origin's.
    """

    code = "job_failed"

    def __init__(self, job: Job, origin: Job | None = None) -> None:
        super().__init__(job, origin)
        self.job = job
        self.origin = origin
        failure = (origin or job).failure
        self.exception = None if failure is None else failure.exception
        if self.exception is not None:
            self.__cause__ = RemoteTraceback(self.exception)

    @property
    def message(self) -> str:
        told = _ended(self.job)
        return told if self.origin is None else f"{told}; {_ended(self.origin)}"

    @property
    def exception_type(self) -> str | None:
        """The type of the exception, with its module unless it is built in."""
        return None if self.exception is None else self.exception.type

    @property
    def exception_message(self) -> str | None:
        """The message of the exception."""
        return None if self.exception is None else self.exception.message

    @property
    def traceback(self) -> str | None:
        """The traceback of the exception, on the worker."""
        return None if self.exception is None else self.exception.traceback

    @property
    def cause(self) -> ExceptionInfo | None:
        """What caused the exception, if anything did."""
        return None if self.exception is None else self.exception.cause

    def __repr__(self) -> str:
        ran = self.origin or self.job
        what = ran.reason if self.exception is None else _in_short(self.exception)
        if self.origin is not None:
            what = f"job {ran.id} {ran.state}: {what}"
        return f"JobFailed(job {self.job.id} {self.job.state}: {what})"


class WorkflowFailed(WindlassError):
    """A workflow did not complete; `workflow` has its details, `jobs` the failed ones."""

    code = "workflow_failed"

    def __init__(self, workflow: Workflow, jobs: Sequence[Job] = ()) -> None:
        super().__init__(workflow, jobs)
        self.workflow = workflow
        self.jobs = list(jobs)

    @property
    def message(self) -> str:
        counts = ", ".join(f"{number} {state}" for state, number in self.workflow.counts.items())
        start = f"workflow {self.workflow.id} {self.workflow.state}: {counts or 'no jobs'}"
        named = [_named(job) for job in self.jobs[:MAX_NAMED]]
        if len(self.jobs) > MAX_NAMED:
            named.append(f"and {len(self.jobs) - MAX_NAMED} more")
        return "; ".join([start, *named])

    def __repr__(self) -> str:
        return f"WorkflowFailed({self.message})"


class ResultTimeout(WaitTimeout):
    """The time of whoever waits is up; `jobs` have not ended, and go on."""

    code = "result_timeout"

    def __init__(self, message: str, jobs: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.jobs = list(jobs)


def _ended(job: Job) -> str:
    return f"job {job.id} {job.state}: {job.reason or 'no reason given'}"


def _named(job: Job) -> str:
    name = f" {job.name}" if job.name else ""
    return f"job {job.id}{name} {job.state}: {job.reason or 'no reason given'}"


def _in_short(exception: ExceptionInfo) -> str:
    line = exception.message.partition("\n")[0]
    return f"{exception.type}: {shorten(line, MAX_CHARACTERS)}" if line else exception.type
