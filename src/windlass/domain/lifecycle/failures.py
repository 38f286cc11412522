"""Classifies failures of attempts. The class decides whether the job is retried."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, Self

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace


class Coded(StrEnum):
    """Names with numbers: `.code` is what the stores keep."""

    code: int

    def __new__(cls, value: str, code: int = 0) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.code = code
        return member


class FailureClass(Coded):
    """A failure's class; 0 in the stores means "no failure"."""

    EXECUTION = "execution", 1
    WORKER_LOST = "worker_lost", 2
    TIMEOUT = "timeout", 3
    NETWORK = "network", 4
    RESOURCE = "resource", 5
    CANCELED = "canceled", 6
    CONFIGURATION = "configuration", 7


# Where the timeout of an attempt comes from.
TimeoutFrom = Literal["job", "media", "queue", "default"]

FAILURE_BY_CODE: Final[tuple[FailureClass | None, ...]] = (None, *FailureClass)

# Python 3.11 raises TypeError for `"network" in FailureClass`; this handles unknown names.
FAILURE_BY_NAME: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {failure.value: failure for failure in FailureClass}
)

# Failures that may be the worker's fault (`domain/matching/probation.py`).
INFRASTRUCTURE: Final[frozenset[FailureClass]] = frozenset(
    {FailureClass.WORKER_LOST, FailureClass.NETWORK, FailureClass.RESOURCE}
)

# The first match counts, so that "worker died after a timeout" is a lost worker. A timeout that
# the work itself met is transient; FailureClass.TIMEOUT means that the job's own limit ran out.
TEXT_PATTERNS: Final[tuple[tuple[str, FailureClass], ...]] = (
    ("worker died", FailureClass.WORKER_LOST),
    ("node unavailable", FailureClass.WORKER_LOST),
    ("stale", FailureClass.WORKER_LOST),
    ("timeout", FailureClass.NETWORK),
    ("connection refused", FailureClass.NETWORK),
    ("connection reset", FailureClass.NETWORK),
    ("temporary failure", FailureClass.NETWORK),
    ("network error", FailureClass.NETWORK),
    ("no such host", FailureClass.NETWORK),
    ("broken pipe", FailureClass.NETWORK),
)


EXCEPTION_LIMIT: Final = 128 * 1024  # bytes; workers send far less


class ExceptionInfo(Struct, frozen=True, omit_defaults=True):
    """An exception as text. `type` includes its module, except for built-in ones."""

    type: str
    message: str = ""
    traceback: str = ""
    cause: "ExceptionInfo | None" = None

    def changed(self, change: Callable[[str], str]) -> "ExceptionInfo":
        """Returns it with every text changed, for example to hide secrets."""
        cause = None if self.cause is None else self.cause.changed(change)
        return ExceptionInfo(change(self.type), change(self.message), change(self.traceback), cause)


class Raised(Struct, frozen=True, omit_defaults=True):
    """The exception that ended a function: the names of its classes, and the retry it asks for.

    `after_ms` is how long that retry waits; None: the usual time. `exception` is for callers that
    wait for the result.
    """

    names: tuple[str, ...] = ()
    asks: Literal["retry", "abort"] | None = None
    after_ms: int | None = None
    exception: ExceptionInfo | None = None

    def stored(self) -> bytes | None:
        """Returns the exception as it is stored instead of a result, if it can be."""
        if self.exception is None:
            return None
        try:
            body = encode(self.exception)
        except (TypeError, ValueError, RecursionError):  # no text that can be stored
            return None
        return body if len(body) <= EXCEPTION_LIMIT and rb"\u0000" not in body else None

    def changed(self, change: Callable[[str], str]) -> "Raised":
        """Returns it with every text changed, for example to hide secrets."""
        told = None if self.exception is None else self.exception.changed(change)
        return replace(self, names=tuple(map(change, self.names)), exception=told)


NOTHING_RAISED: Final = Raised()


def classify(message: str) -> FailureClass:
    """Returns the class of a failure described by text; an explicit class has priority."""
    lowered = message.lower()
    for pattern, failure in TEXT_PATTERNS:
        if pattern in lowered:
            return failure
    return FailureClass.EXECUTION
