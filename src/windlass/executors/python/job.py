"""A call of a Python function in progress, and how reports and deaths become results."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final

import msgspec

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.tasks.references import FILE
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.executors.limits import is_own, over_limit
from windlass.executors.python.functions import SUSPENDED, advise
from windlass.executors.python.known import Noted
from windlass.executors.python.messages import (
    Alive,
    Answer,
    Ask,
    Call,
    Done,
    Failed,
    Log,
    Progress,
    Report,
)
from windlass.executors.python.process import SideChannel, exit_text
from windlass.messages.jobs import SubmitRequest
from windlass.messages.steps import StepRequest
from windlass.ports.executor import Exit, JobContext, Result
from windlass.tasks.current import SCRATCH
from windlass.tasks.steps import STEP

COMPLETED: Final = Result()
STOPPED: Final = Result(outcome="canceled", failure=FailureClass.CANCELED, message="stopped")
_KILLED: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
_FILE: Final = f'"{FILE}"'.encode()
_decode: Final = msgspec.json.decode


NoteMissing = Callable[[str], Noted]  # receives the reason
Send = Callable[[Answer], None]  # sends it to the process that asked


class PythonJob:
    """One call and its waiters."""

    __slots__ = (
        "_asking", "_future", "_note_missing", "born", "call", "context", "done", "last", "old",
        "result", "side", "stopped", "watch",
    )  # fmt: skip

    def __init__(
        self, call: Call, context: JobContext, born: int, missing: NoteMissing | None = None
    ) -> None:
        self.call = call
        self.context = context
        self.born = born  # the tick at which it began
        self._note_missing = missing
        self.result: Result | None = None  # once it has ended
        self.last: Result | None = None  # what becomes its result when its process has ended
        self.done: Callable[[Result], None] | None = None  # called when it has ended
        self._future: asyncio.Future[Result] | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self.side: SideChannel | None = None  # connection to its process, if it has its own
        self.old = False  # it has outlived a few ticks
        self.stopped = False  # it was told to stop
        self.watch: asyncio.Task[None] | None = None

    @property
    def future(self) -> asyncio.Future[Result]:
        """Returns a future for those who wait for its end."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
            if self.result is not None:
                self._future.set_result(self.result)
        return self._future

    def settle(self, result: Result) -> None:
        """Hands over the result."""
        if self.result is not None:
            return
        self.result = result
        if self._future is not None and not self._future.done():
            self._future.set_result(result)
        if self.watch is not None:
            self.watch.cancel()
        if self.done is not None:
            self.done(result)

    def missing(self, why: str) -> Result:
        """Returns its result if this worker does not have its function; records that."""
        noted = None if self._note_missing is None else self._note_missing(why)
        why = why if noted is None else noted.why
        message = f"this worker cannot run {self.call.function}: {why}"
        return Result(
            outcome="failed", failure=FailureClass.CONFIGURATION, message=message,
            misfit=noted is None, unable=noted is not None,
            back_off=noted is not None and noted.forgot,
        )  # fmt: skip

    def hear(self, report: Report, send: Send) -> Result | None:
        """Passes on a report of its process; returns the result if the call has ended."""
        if isinstance(report, Done):
            return done_result(report)
        if isinstance(report, Failed):
            return failed_result(self, report)
        if isinstance(report, Ask):
            task = asyncio.get_running_loop().create_task(self._answer(report, send))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        elif isinstance(report, Log):
            self.context.log(report.data)
        elif isinstance(report, Progress):
            self.context.progress(_decode(report.value))
        elif isinstance(report, Alive):
            self.context.alive()
        return None

    async def _answer(self, ask: Ask, send: Send) -> None:
        send(await self.answer(ask))

    async def answer(self, ask: Ask) -> Answer:
        """Submits jobs or stores a step for the function, and returns the answer."""
        if ask.body == SCRATCH:
            # A shared, confined process makes the folder itself, where it can see it.
            apart = self.side is None and self.context.isolation != WEAKEST
            folder = None if apart else str(self.context.scratch)
            return Answer(ask.number, msgspec.json.encode(folder))
        try:
            if ask.what == STEP:
                step = msgspec.json.decode(ask.body, type=StepRequest)
                reply: object = await self.context.step(step)
            else:
                request = msgspec.json.decode(ask.body, type=SubmitRequest)
                reply = await self.context.submit(request)
        except WindlassError as error:
            return Answer(ask.number, msgspec.json.encode(error.describe()), True)
        except msgspec.MsgspecError as error:
            misfit = InvalidInput(ask.what, "a known request", str(error))
            return Answer(ask.number, msgspec.json.encode(misfit.describe()), True)
        return Answer(ask.number, msgspec.json.encode(reply))


def done_result(report: Done) -> Result:
    """Returns the result of a call that returned."""
    if report.result is None:
        return COMPLETED
    body = report.result
    return Result(result=_decode(body), size=len(body), leaves_files=_FILE in body)


def failed_result(job: PythonJob, report: Failed) -> Result:
    """Returns the result of a call that raised, or was stopped."""
    if report.failure == SUSPENDED:
        return Result(outcome="suspended")
    advice = advise(report.variable, os.environ)
    if report.missing is not None:
        return job.missing(report.missing + advice)
    if report.failure != FailureClass.CANCELED:
        return Result(
            outcome="failed",
            failure=report.failure,
            message=report.message + advice,
            exit_code=report.exit_code,
            misfit=report.misfit,
            raised=report.raised,
        )
    return STOPPED if job.stopped else lost("its process was told to end")


def lost(message: str) -> Result:
    """Returns the result of a call that was not at fault."""
    return Result(outcome="failed", failure=FailureClass.WORKER_LOST, message=message)


def died_result(end: Exit, alone: bool) -> Result:
    """Returns the result of a call whose process died; only if `alone`, the call is to blame."""
    message = f"its process {exit_text(end)}"
    passed = over_limit(end) if alone and not end.out_of_memory else None
    if passed is not None:
        return passed
    if end.out_of_memory:
        failure = FailureClass.RESOURCE
    elif end.signal in _KILLED or not alone:
        failure = FailureClass.WORKER_LOST
    else:
        failure = FailureClass.EXECUTION
    return Result(
        outcome="failed", failure=failure, message=message, exit_code=end.code,
        own_limit=end.out_of_memory and is_own(end),
    )  # fmt: skip
