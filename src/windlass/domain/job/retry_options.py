"""A job's own retry options: checks them, and applies them to the policy."""

import builtins
from typing import Any, Final

from msgspec.structs import replace

from windlass.domain.job.forms import milliseconds
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FAILURE_BY_NAME, FailureClass
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import NAME_LIMIT, did_you_mean

MAX_FAILURES: Final = 50
CLASSES: Final = tuple(str(c) for c in FailureClass if c is not FailureClass.CANCELED)
BUILT_IN: Final = frozenset(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
)

# Tasks that run programs, whose failures are never Python exceptions.
PROGRAMS: Final = frozenset({"shell", "ffmpeg", "gstreamer"})


def check_retries(spec: JobSpec, field: str) -> None:
    """Raises `InvalidInput` for failures that the job could never have."""
    functions = spec.task not in PROGRAMS
    _check_failures(spec.retry_on, f"{field}.retry_on", functions)
    _check_failures(spec.no_retry_on, f"{field}.no_retry_on", functions)


def _check_failures(names: tuple[str, ...], field: str, functions: bool) -> None:
    """Raises `InvalidInput` for anything but a failure class or an exception of a function."""
    if len(names) > MAX_FAILURES:
        raise InvalidInput(field, f"at most {MAX_FAILURES} failures", len(names))
    for name in names:
        if name in CLASSES or (functions and _is_exception(name)):
            continue
        expected = f"some of {', '.join(CLASSES)}"
        if not functions:
            raise InvalidInput(field, expected, name, did_you_mean(name, CLASSES))
        known = (*CLASSES, *BUILT_IN)
        expected += ", and exceptions such as ValueError or requests.ConnectionError"
        raise InvalidInput(field, expected, name, did_you_mean(name, known))


def _is_exception(name: str) -> bool:
    parts = name.split(".")
    if len(name) > NAME_LIMIT or name in FAILURE_BY_NAME:
        return False
    return name in BUILT_IN or (len(parts) > 1 and all(part.isidentifier() for part in parts))


def policy_of(policy: RetryPolicy, spec: JobSpec) -> RetryPolicy:
    """Returns the policy with the job's own options about retries and backoff.

    Lost workers are still counted separately, and retried at least as often as other failures.
    """
    changes: dict[str, Any] = {}
    if spec.retries is not None:
        changes["max_retries"] = spec.retries
        if not spec.retry_on or FailureClass.WORKER_LOST in spec.retry_on:
            changes["max_lost"] = max(policy.max_lost, spec.retries)
    own = spec.backoff
    if own is not None:
        initial, most = milliseconds(own.initial), milliseconds(own.max)
        first = policy.initial_backoff_ms if initial is None else initial
        last = policy.max_backoff_ms if most is None else most
        if initial is None:
            first = min(first, last)
        changes |= {"initial_backoff_ms": first, "max_backoff_ms": max(first, last)}
        if own.factor is not None:
            changes["multiplier"] = own.factor
        if own.jitter is not None:
            changes["jitter"] = own.jitter
    return replace(policy, **changes) if changes else policy
