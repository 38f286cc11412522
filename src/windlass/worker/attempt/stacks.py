"""Tells the server the current stack of an attempt's function, on request."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec
import structlog

from windlass.domain.values.errors import WindlassError
from windlass.messages.files import StackReport, StackThread
from windlass.ports.executor import Executor, JobContext
from windlass.ports.gateway import AttemptGateway, Holder
from windlass.worker.attempt.masking import Mask

PATIENCE_S: Final = 3.0
NO_FUNCTION: Final = "only running Python functions have a stack that can be shown"
SILENT: Final = (
    "its process does not answer: it is stopped, or runs code outside of Python that does not let "
    "other threads run"
)
NOT_THERE: Final = "its function has not begun, or has ended"

Read = Callable[[JobContext], Awaitable[list[StackThread] | None]]

log = structlog.get_logger()
_answering: dict[tuple[Holder, int], asyncio.Task[None]] = {}


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
