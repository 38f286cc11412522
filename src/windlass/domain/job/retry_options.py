"""What a job's own options about retries mean: checks them, and applies them to the policy."""

from typing import Any, Final

from msgspec.structs import replace

from windlass.domain.job.forms import milliseconds
from windlass.domain.job.job import JobSpec
from windlass.domain.job.retry_forms import check_failures
from windlass.domain.lifecycle.retries import RetryPolicy

# Tasks that run programs: nothing of theirs is a Python exception.
PROGRAMS: Final = frozenset({"shell", "ffmpeg", "gstreamer"})


def check_retries(spec: JobSpec, field: str) -> None:
    """Raises `InvalidInput` for failures that the job could never have."""
    functions = spec.task not in PROGRAMS
    check_failures(spec.retry_on, f"{field}.retry_on", functions)
    check_failures(spec.no_retry_on, f"{field}.no_retry_on", functions)


def policy_of(policy: RetryPolicy, spec: JobSpec) -> RetryPolicy:
    """Returns the policy with what the job itself says about retries and backoff."""
    changes: dict[str, Any] = {}
    if spec.retries is not None:
        changes["max_retries"] = spec.retries
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
