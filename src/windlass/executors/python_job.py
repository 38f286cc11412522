"""A call of a Python function on its way, and how reports and deaths become results."""

import asyncio
import signal
from typing import Final

import msgspec

from windlass.domain.failure import FailureClass
from windlass.executors.python_messages import Call, Done, Failed, Log, Progress, Report
from windlass.executors.python_process import exit_text
from windlass.ports.executor import Exit, JobContext, Result

COMPLETED: Final = Result()
STOPPED: Final = Result(outcome="canceled", failure=FailureClass.CANCELED, message="stopped")
_KILLED: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
_decode: Final = msgspec.json.decode


class Job:
    """One call and who waits for it."""

    __slots__ = ("call", "context", "future", "old", "stopped", "watch")

    def __init__(self, call: Call, context: JobContext, future: asyncio.Future[Result]) -> None:
        self.call = call
        self.context = context
        self.future = future
        self.old = False  # it has lived through a few ticks
        self.stopped = False  # it was told to stop
        self.watch: asyncio.Task[None] | None = None

    def settle(self, result: Result) -> None:
        """It has ended."""
        if not self.future.done():
            self.future.set_result(result)

    def pass_on(self, report: Report) -> None:
        """It goes on, and has something to say."""
        if isinstance(report, Log):
            self.context.log(report.data)
        elif isinstance(report, Progress):
            self.context.progress(_decode(report.value))


def done_result(report: Done) -> Result:
    """The result of a call that returned."""
    if report.result is None:
        return COMPLETED
    return Result(result=_decode(report.result))


def failed_result(job: Job, report: Failed) -> Result:
    """The result of a call that raised, or was stopped."""
    if report.failure != FailureClass.CANCELED:
        return Result(
            outcome="failed",
            failure=report.failure,
            message=report.message,
            exit_code=report.exit_code,
        )
    return STOPPED if job.stopped else lost("its process was told to end")


def lost(message: str) -> Result:
    """The result of a call that was not at fault."""
    return Result(outcome="failed", failure=FailureClass.WORKER_LOST, message=message)


def died_result(end: Exit, alone: bool) -> Result:
    """The result of a call whose process died; whose fault it was shows only if `alone`."""
    message = f"its process {exit_text(end)}"
    if end.out_of_memory:
        failure = FailureClass.RESOURCE
    elif end.signal in _KILLED or not alone:
        failure = FailureClass.WORKER_LOST
    else:
        failure = FailureClass.EXECUTION
    return Result(outcome="failed", failure=failure, message=message, exit_code=end.code)
