"""What passes between a running job and the server: progress, steps, jobs of its own, stacks.

A result that could not be stored would be lost with the attempt, so a step is sent again until a
server answers or the attempt is stopped. A submission is repeated while nobody answers. Secrets are
never part of any: they are masked, and options that decide how a child runs are refused if they
contain one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any, Final

import msgspec
import structlog

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import (
    InvalidInput,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    Unreachable,
    WindlassError,
)
from windlass.messages.files import StackReport, StackThread
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.ports.clock import Clock
from windlass.ports.executor import Executor, JobContext
from windlass.ports.gateway import AttemptGateway, Holder
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.secrets import Mask

PACE_MS = 1_000
ALIVE = StepRequest(do="alive")

STEP_PAUSES_MS: Final = (100, 300, 1_000, 3_000)

PATIENCE_S: Final = 3.0
NO_FUNCTION: Final = "only running Python functions have a stack that can be shown"
SILENT: Final = (
    "its process does not answer: it is stopped, or runs code outside of Python that does not let "
    "other threads run"
)
NOT_THERE: Final = "its function has not begun, or has ended"

Read = Callable[[JobContext], Awaitable[list[StackThread] | None]]
_answering: dict[tuple[Holder, int], asyncio.Task[None]] = {}

log = structlog.get_logger()


class Progress:
    """The progress of one attempt."""

    def __init__(self, context: AgentContext, holder: Holder) -> None:
        self._gateway = context.gateway
        self._holder = holder
        self._clock = context.clock
        self._values: list[Any] = []  # the newest, if it was not sent yet
        self._alive = False  # whether there is a sign of life to pass on
        self._task: asyncio.Task[None] | None = None

    def tell(self, value: Any) -> None:
        """Sends this soon, unless a newer value comes first."""
        self._values = [value]
        self._begin()

    def note_alive(self) -> None:
        """Passes on a sign of life soon."""
        self._alive = True
        self._begin()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._values or self._alive:
            self._alive = False
            try:
                if self._values:
                    await self._gateway.progress(self._holder, self._values.pop())
                else:
                    await self._gateway.step(self._holder, ALIVE)
            except WindlassError:
                pass  # Progress that could not be sent goes out with the next.
            await self._clock.sleep_ms(PACE_MS)


def conceal_step(request: StepRequest, mask: Mask | None) -> StepRequest:
    """Returns the request with each secret masked."""
    if mask is None:
        return request
    shown = ("key", "value", "name", "question", "schema")
    masked = {name: mask.value(getattr(request, name)) for name in shown}
    return msgspec.structs.replace(request, **masked)


async def ask_step(
    context: AgentContext, holder: Holder, request: StepRequest, is_stopped: Callable[[], bool]
) -> StepReply:
    """Sends the request until a server answers."""
    for tries in count():
        try:
            return await context.gateway.step(holder, request)
        except TooManyRequests:
            raise
        except (Unreachable, StoreUnavailable, Overloaded):
            if is_stopped():
                raise
        await context.clock.sleep_ms(STEP_PAUSES_MS[min(tries, len(STEP_PAUSES_MS) - 1)])
    raise AssertionError("unreachable")


CHILD_PAUSES_MS = (300, 1_000, 3_000, 10_000)
SHOWN: Final = ("name", "labels")  # fields that only people read


def conceal_children(request: SubmitRequest, mask: Mask) -> SubmitRequest:
    """Returns the request without secrets; raises `InvalidInput` where a mask would do harm."""
    jobs = [_conceal_child(job, mask, f"jobs[{n}]") for n, job in enumerate(request.jobs)]
    return msgspec.structs.replace(request, jobs=jobs, key=mask.value(request.key))


def _conceal_child(job: JobSpec, mask: Mask, field: str) -> JobSpec:
    given = msgspec.to_builtins(job)
    masked = mask.value(given)
    if masked == given:
        return job
    for name in given.keys() | masked.keys():
        if name not in SHOWN and given.get(name) != masked.get(name):
            expected = "without the value of a secret: a job that needs one names it in `secrets`"
            raise InvalidInput(f"{field}.{name}", expected, "a text with one")
    return msgspec.structs.replace(job, **{name: masked.get(name) for name in SHOWN})


async def submit_children(
    gateway: AttemptGateway, clock: Clock, holder: Holder, request: SubmitRequest, number: int
) -> SubmitReply:
    """Submits jobs; `number` distinguishes the calls of one attempt that have no key."""
    own = f"attempt {holder.job}.{holder.attempt}.{number}"
    key = own if request.key is None else f"key {request.key}"
    request = msgspec.structs.replace(request, key=key)
    for pause_ms in CHILD_PAUSES_MS:
        try:
            return await gateway.submit(holder, request)
        except Unreachable:
            await clock.sleep_ms(pause_ms)
    return await gateway.submit(holder, request)


def tell_stack(
    gateway: AttemptGateway, holder: Holder, request: int, executor: Executor, attempt: JobContext,
    mask: Mask | None,
) -> None:  # fmt: skip
    """Answers a request, unless it is already being answered."""
    key = holder, request
    if key not in _answering:
        read: Read | None = getattr(executor, "stack", None)
        work = _answer(gateway, holder, _report(request, read, attempt, mask))
        _answering[key] = task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda _: _answering.pop(key, None))


async def _answer(
    gateway: AttemptGateway, holder: Holder, making: Coroutine[Any, Any, StackReport]
) -> None:
    report = await making
    try:
        await gateway.stack(holder, report)
    except WindlassError as error:
        log.info("stack_not_told", job=holder.job, reason=error.message)


async def _report(
    request: int, read: Read | None, attempt: JobContext, mask: Mask | None
) -> StackReport:
    if read is None:
        return StackReport(request=request, problem=NO_FUNCTION)
    try:
        async with asyncio.timeout(PATIENCE_S):
            threads = await read(attempt)
    except (TimeoutError, OSError):
        return StackReport(request=request, problem=SILENT)
    if threads is None:
        return StackReport(request=request, problem=NOT_THERE)
    if mask is not None:
        shown = mask.value(msgspec.to_builtins(threads))
        threads = msgspec.convert(shown, list[StackThread], strict=False)
    return StackReport(request=request, threads=tuple(threads))
