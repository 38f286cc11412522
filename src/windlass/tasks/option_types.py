"""The types of job options in Python programs, for type checkers and editors.

Nothing here is loaded at run time. `tests/client/test_option_types.py` keeps it equal to the
options of `JobSpec`, which document each of them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from windlass.domain.job.forms import Backoff, Concurrency, JobLimits, RateLimit
from windlass.domain.values.quantities import DurationLike

Moment = str | datetime | timedelta
Names = str | Sequence[str]
# Handles of jobs, whether from a client or a transaction, are not known here.
Jobs = Any
Failures = str | type[BaseException] | Sequence[str | type[BaseException]]


class TaskOptions(TypedDict, total=False):
    """Options of all jobs of a function: those of `@windlass.task(...)`."""

    allow_failure: bool
    apart: str | None
    backoff: Backoff | Mapping[str, Any] | None
    capability_grace: DurationLike | None
    concurrency: Concurrency | Mapping[str, Any] | str | None
    delay: DurationLike | None
    duration: DurationLike | None
    finish_before: Moment | None
    idle_timeout: DurationLike | None
    image: str | None
    isolation: Literal["process", "user", "sandbox", "container"] | None
    key_for: DurationLike | None
    kind: str | None
    labels: Mapping[str, str] | None
    limits: JobLimits | Mapping[str, Any] | None
    namespace: str | None
    network: Literal["host", "none"] | None
    no_retry_on: Failures
    not_before: Moment | None
    preemptible: bool
    prefers: Names
    priority: int | str | None
    pull: Literal["missing", "always", "never"] | None
    queue: str
    rate: RateLimit | Mapping[str, Any] | str | None
    registry_secret: str | None
    requires: Names
    resources: Mapping[str, Any] | None
    retries: int | None
    retry_on: Failures
    run_if: str | None
    secrets: Names
    start_before: Moment | None
    target: str | None
    timeout: DurationLike | None
    trace: str | None
    unblock: Literal["auto", "manual"]


class CallOptions(TaskOptions, total=False):
    """Options of single jobs: those of `task.options(...)`."""

    after: Jobs
    after_any: Jobs
    key: str | None
    name: str | None
    parent: int | None
    version: str | None
    workflow: int | None
