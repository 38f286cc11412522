"""Events as lines for people, in the format of the scheduler that Windlass replaces.

    [FSM] Job 123: QUEUED → ASSIGNED (reason: Assigned to worker worker-1)
    [Health] Worker worker-1 (node-name) dead - no heartbeat for 2m30s (threshold: 2m)
    [Cleanup] Job 42 timed out (last activity: 2026-01-02 12:34:56)
    [Cleanup] Found 3 orphaned jobs
    [Retry] Job 42: attempt 2 in 10s (retry 2 of 3, reason: broken pipe)

The log stores no text for a transition that explains itself. We add the reason here, off
the hot path.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_duration


class WorkerName(NamedTuple):
    """A worker's name and the machine it runs on."""

    name: str
    node: str


Names = Mapping[int, WorkerName]

_REASONS: Final[Mapping[State, str]] = {
    State.BLOCKED: "Waiting for its dependencies",
    State.QUEUED: "Ready to be assigned",
    State.ASSIGNED: "Assigned to worker {worker}",
    State.RUNNING: "Started on worker {worker}",
    State.CANCELING: "Told to stop on worker {worker}",
    State.TIMED_OUT: "Timed out on worker {worker}",
    State.RETRYING: "Tried again",
    State.SUSPENDED: "Waits without holding a slot",
    State.COMPLETED: "Completed on worker {worker}",
    State.FAILED: "Failed on worker {worker}",
    State.CANCELED: "Canceled",
    State.ABORTED: "A dependency did not complete",
    State.SKIPPED: "Its condition did not hold",
    State.REJECTED: "No worker can run it",
}
_SUBMITTED: Final[Mapping[State, str]] = {
    State.BLOCKED: "Submitted, waiting for its dependencies",
    State.QUEUED: "Submitted",
}
_BY_WORKERS: Final = frozenset({State.RUNNING, State.COMPLETED})
_TAGS: Final[Mapping[int, str]] = {
    EventKind.WORKER: "Health",
    EventKind.WORKFLOW: "Workflow",
    EventKind.LOG: "Log",
    EventKind.WATCHDOG: "Watchdog",
    EventKind.POOL: "Pool",
    EventKind.QUEUE: "Queue",
    EventKind.PRIORITY: "Priority",
    EventKind.LOOP: "Cleanup",
    EventKind.SUPERSEDE: "Retry",
    EventKind.SCHEDULE: "Schedule",
    EventKind.TEMPLATE: "Template",
    EventKind.REACTION: "Reaction",
    EventKind.ACCESS: "Access",
}


def render(event: Event, names: Names) -> list[str]:
    """Returns the lines of one event: the transition, and its meaning if it deserves a line.

    Names and reasons come from outside. A line break in them must not look like another event.
    """
    return [" ".join(text.splitlines()) for text in _lines_of(event, names)]


def _lines_of(event: Event, names: Names) -> list[str]:
    data = event.details
    to = STATE_BY_CODE[event.to]
    if event.kind != EventKind.JOB or to is None:
        return [_other(event, data, names)]
    lines = [_transition(event, to, names)]
    if to is State.TIMED_OUT and "last_activity" in data:
        at = _shown_time(data["last_activity"])
        lines.append(f"[Cleanup] Job {event.job} timed out (last activity: {at})")
    if to is State.RETRYING and "counts" in data:
        lines.append(_retry(event, data))
    return lines


def _transition(event: Event, to: State, names: Names) -> str:
    source = STATE_BY_CODE[event.source]
    before = "NEW" if source is None else source.upper()
    reason = reason_of(event, to, _named(event.worker, names).name)
    by = f", by {event.actor}" if event.actor else ""
    return f"[FSM] Job {event.job}: {before} → {to.upper()} (reason: {reason}{by})"


def reason_of(event: Event, to: State, worker: str) -> str:
    """Returns why a job moved to this state, even if the log stores no text."""
    if event.reason:
        return event.reason
    text = (None if event.source else _SUBMITTED.get(to)) or _REASONS[to]
    return text.format(worker=worker)


def actor_of(event: Event, to: State, worker: str, submitted_by: str | None) -> str | None:
    """Returns who moved a job: a person, a worker, or the scheduler itself."""
    if event.actor:
        return event.actor
    if not event.source:
        return submitted_by
    return f"worker {worker}" if to in _BY_WORKERS else "scheduler"


def _retry(event: Event, data: Mapping[str, Any]) -> str:
    wait = int(data.get("backoff_ms", 0))
    when = f"in {format_duration(wait)}" if wait else "at once"
    counted = f"retry {data['retry']} of {data['of']}" if "retry" in data else "not counted"
    following = f"attempt {data.get('next', shown_attempt(event.attempt) + 1)} {when}"
    return f"[Retry] Job {event.job}: {following} ({counted}, reason: {event.reason})"


def _other(event: Event, data: Mapping[str, Any], names: Names) -> str:
    tag = _TAGS.get(event.kind, "Event")
    text = event.reason or ""
    if event.kind == EventKind.WORKER and data.get("status") == "offline":
        known = _named(event.worker, names)
        text = f"Worker {data.get('name', known.name)} ({known.node}) {text}"
    elif event.kind == EventKind.WORKFLOW:
        text = f"Workflow {data.get('workflow', 0)}: {text}"
    elif event.job and not re.search(rf"\bjob {event.job}\b", text, re.IGNORECASE):
        text = f"Job {event.job}: {text}"
    by = f" (by {event.actor})" if event.actor and event.kind != EventKind.LOOP else ""
    return f"[{tag}] {text}{by}"


def _named(worker: int, names: Names) -> WorkerName:
    known = names.get(worker)
    return WorkerName(str(worker), str(worker)) if known is None else known


def _shown_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
