"""What kind of failure ended an attempt. The class decides whether it is tried again."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self


class FailureClass(StrEnum):
    """A failure's class; `.code` is its number in the stores (0 stands for "no failure")."""

    code: int

    def __new__(cls, value: str, code: int = 0) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.code = code
        return member

    EXECUTION = "execution", 1
    WORKER_LOST = "worker_lost", 2
    TIMEOUT = "timeout", 3
    NETWORK = "network", 4
    RESOURCE = "resource", 5
    CANCELED = "canceled", 6
    CONFIGURATION = "configuration", 7


FAILURE_BY_CODE: Final[tuple[FailureClass | None, ...]] = (None, *FailureClass)

# Python 3.11 raises TypeError for `"network" in FailureClass`: unknown names are met here.
FAILURE_BY_NAME: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {failure.value: failure for failure in FailureClass}
)

# Evidence against a worker: 5 different jobs with these in 10 min drain it as bad.
INFRASTRUCTURE: Final[frozenset[FailureClass]] = frozenset(
    {FailureClass.WORKER_LOST, FailureClass.NETWORK, FailureClass.RESOURCE}
)

# In order: the more telling pattern first ("worker died after a timeout" lost its worker).
TEXT_PATTERNS: Final[tuple[tuple[str, FailureClass], ...]] = (
    ("worker died", FailureClass.WORKER_LOST),
    ("node unavailable", FailureClass.WORKER_LOST),
    ("stale", FailureClass.WORKER_LOST),
    ("timeout", FailureClass.TIMEOUT),
    ("connection refused", FailureClass.NETWORK),
    ("connection reset", FailureClass.NETWORK),
    ("temporary failure", FailureClass.NETWORK),
    ("network error", FailureClass.NETWORK),
    ("no such host", FailureClass.NETWORK),
    ("broken pipe", FailureClass.NETWORK),
)


def classify(message: str) -> FailureClass:
    """Classifies a failure that came with text alone."""
    lowered = message.lower()
    for pattern, failure in TEXT_PATTERNS:
        if pattern in lowered:
            return failure
    return FailureClass.EXECUTION
