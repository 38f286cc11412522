"""Exceptions of functions: those that control the task, and the text form of all others.

Tasks raise `windlass.Retry` and `windlass.Abort`. The text of an exception, for callers that wait
for the result, is bounded in size.
"""

import sys
import traceback
from datetime import timedelta
from typing import Final

from windlass.domain.lifecycle.failures import ExceptionInfo
from windlass.domain.tasks.python import MAIN
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms


class Retry(Exception):
    """Raised inside a task: this attempt failed, and the job should be retried.

    `after` is how long it waits, such as "1m"; by default, as long as before any retry. It counts
    as one of the job's `retries`. `raise windlass.Retry(...) from error` keeps the cause.
    """

    def __init__(self, message: str = "", *, after: float | str | timedelta | None = None) -> None:
        if not isinstance(message, str):
            expected = f"text; `after={message!r}` says how long to wait"
            raise InvalidInput("message", expected, message)
        super().__init__(*([message] if message else []))
        if isinstance(after, timedelta):
            after = after.total_seconds()
        self.after_ms = None if after is None else parse_duration_ms(after, "after")


class Abort(Exception):
    """Raised inside a task: the job fails, and is not retried whatever its options say."""


MESSAGE_LIMIT: Final = 2_000
TRACEBACK_LIMIT: Final = 8_000
MAX_CAUSES: Final = 4


def exception_info(error: BaseException, causes: int = MAX_CAUSES) -> ExceptionInfo:
    """Returns an exception with its traceback and its causes."""
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    return ExceptionInfo(
        type=type_name(type(error)),
        message=text_of(error)[:MESSAGE_LIMIT],
        traceback=_traceback(error),
        cause=None if cause is None or not causes else exception_info(cause, causes - 1),
    )


def type_name(kind: type[BaseException]) -> str:
    """Returns the name of an exception, with its module unless it is built in."""
    name = kind.__qualname__
    if is_public(kind):
        return f"windlass.{name}"
    own = kind.__module__ == "builtins" or kind.__module__ in MAIN
    return name if own else f"{kind.__module__}.{name}"


def is_public(kind: type) -> bool:
    """Returns whether programs import a class as `windlass.NAME`."""
    modules: dict[str, str] = getattr(sys.modules.get("windlass"), "_MODULES", {})
    return modules.get(kind.__qualname__) == kind.__module__


def text_of(error: BaseException) -> str:
    """Returns the message of an exception; formatting it may fail."""
    try:
        return _clean(str(error))
    except Exception:  # An exception that cannot be shown must not hide that it happened.
        return "(its message cannot be shown)"


def _traceback(error: BaseException) -> str:
    """Returns the traceback of one exception; cuts the middle of a long one."""
    try:
        text = _clean("".join(traceback.format_exception(error, chain=False)))
    except Exception:  # As above: formatting calls the user's code.
        return ""
    if len(text) <= TRACEBACK_LIMIT:
        return text
    half = TRACEBACK_LIMIT // 2
    return f"{text[:half]}\n…\n{text[-half:]}"


def _clean(text: str) -> str:
    """Returns text that every store takes: without NUL and lone surrogates."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()
