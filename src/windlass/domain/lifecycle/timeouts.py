"""Timeouts of attempts (assigned, running, idle) and deadlines of jobs.

The agent enforces the limits of a running job. The server acts later (`backstop_ms`) if the agent
did not, so that the two never race. A timeout is a transition, not an error.
"""

from enum import Enum
from typing import Annotated, Final

from msgspec import Struct

from windlass.domain.lifecycle.failures import TimeoutFrom
from windlass.domain.values.options import doc

MEDIA: Final = ("ffmpeg", "gstreamer")  # tasks whose run time depends on their media
NEAR: Final = 0.8  # after this part of its timeout, a job gets a warning


class TimeoutPolicy(Struct, frozen=True):
    """How long an attempt may take if its job does not say."""

    ffmpeg_factor: Annotated[
        float, doc("An ffmpeg job may run this many times as long as its input.", "factor")
    ] = 2.0
    ffmpeg_buffer_ms: Annotated[int, doc("Added to the time limit of ffmpeg jobs. 0: none.")] = 0
    gstreamer_extra_ms: Annotated[
        int, doc("A gstreamer job may run this much longer than its input. 0: no longer.")
    ] = 30_000
    default_ms: Annotated[
        int, doc("Limit for jobs without a timeout whose media duration is unknown. 0: none.")
    ] = 1_800_000
    assigned_ms: Annotated[int, doc("Limit between assignment and start.", least=1)] = 300_000
    idle_ms: Annotated[
        int, doc("Limit without log output or progress, for jobs of the idle queues.", least=1)
    ] = 300_000
    idle_queues: Annotated[
        tuple[str, ...],
        doc("Queues whose jobs time out when idle, however long they run.", "queue names"),
    ] = ("live",)


class RunLimits(Struct, frozen=True):
    """The limits of one running attempt; None means that a limit does not apply."""

    run_ms: int | None
    idle_ms: int | None


def default_timeout_ms(policy: TimeoutPolicy, queue_ms: int | None) -> int | None:
    """Returns how long a job without its own timeout may run; None: any time.

    `queue_ms` is the timeout of its queue, if it has one; 0 means no limit.
    """
    return (policy.default_ms if queue_ms is None else queue_ms) or None


def timeout_from(
    policy: TimeoutPolicy, task: str, queue_ms: int | None, own_ms: int | None, shown_ms: int | None
) -> TimeoutFrom | None:
    """Returns where the timeout of a job comes from; None if it has none by default."""
    if own_ms is not None:
        return "job"
    if shown_ms is None:
        return None
    if shown_ms == queue_ms:
        return "queue"
    by_media = task in MEDIA and shown_ms != policy.default_ms
    return "media" if by_media else "default"


def run_timeout_ms(
    policy: TimeoutPolicy,
    task: str,
    duration_ms: int | None,
    own_ms: int | None,
    queue_ms: int | None = None,
) -> int | None:
    """Returns how long a job may run: its own timeout, else one by task and duration.

    A timeout of 0 means that it may run for any time.
    """
    if own_ms is not None:
        return own_ms or None
    if duration_ms is not None and task == "ffmpeg":
        return int(duration_ms * policy.ffmpeg_factor) + policy.ffmpeg_buffer_ms
    if duration_ms is not None and task == "gstreamer":
        return duration_ms + policy.gstreamer_extra_ms
    return default_timeout_ms(policy, queue_ms)


def idle_timeout_ms(policy: TimeoutPolicy, queue: str, own_ms: int | None) -> int | None:
    """Returns how long a job may be inactive; None means that only its run time is limited."""
    if own_ms is not None:
        return own_ms
    return policy.idle_ms if queue in policy.idle_queues else None


def limits_for(
    policy: TimeoutPolicy,
    *,
    task: str,
    queue: str,
    duration_ms: int | None = None,
    own_run_ms: int | None = None,
    own_idle_ms: int | None = None,
    queue_ms: int | None = None,
) -> RunLimits:
    """Returns both limits of a job. With an idle limit, its run time is limited only on request."""
    idle_ms = idle_timeout_ms(policy, queue, own_idle_ms)
    if idle_ms is not None and own_run_ms is None:
        return RunLimits(run_ms=None, idle_ms=idle_ms)
    return RunLimits(run_timeout_ms(policy, task, duration_ms, own_run_ms, queue_ms), idle_ms)


def run_deadline_ms(
    limits: RunLimits, started_at_ms: int, last_activity_at_ms: int | None
) -> int | None:
    """Returns when the agent stops an attempt; its start counts as the first activity."""
    deadlines = []
    if limits.run_ms is not None:
        deadlines.append(started_at_ms + limits.run_ms)
    if limits.idle_ms is not None:
        active_at_ms = started_at_ms if last_activity_at_ms is None else last_activity_at_ms
        deadlines.append(active_at_ms + limits.idle_ms)
    return min(deadlines, default=None)


def backstop_ms(deadline_ms: int, term_grace_ms: int, heartbeat_interval_ms: int) -> int:
    """Returns when the server acts on a deadline that the agent should have enforced."""
    return deadline_ms + term_grace_ms + heartbeat_interval_ms


DEADLINE = "deadline"


class Late(Enum):
    """The deadline that a job has missed."""

    START = "start_before"
    FINISH = "finish_before"

    @property
    def reason(self) -> str:
        """Returns the reason for the log; its first word is made for searching."""
        return f"{DEADLINE}: {self.value} has passed"


def late_for(
    start_before: int | None, finish_before: int | None, has_run: bool, now: int
) -> Late | None:
    """Returns the deadline that an open job missed; one that has run is never late to start."""
    if finish_before is not None and now >= finish_before:
        return Late.FINISH
    if start_before is not None and now >= start_before and not has_run:
        return Late.START
    return None
