"""Events: the rows of the append-only log, from which the state can be replayed.

An event says what happened, never what should happen next. Job events carry both states of one
transition; the other kinds say in `reason` and `data` what changed. If retention has removed the
first events, a replay starts from `BaselineRow`.

Lines for people have the format of the scheduler that Windlass replaces:

    [FSM] Job 123: QUEUED → ASSIGNED (reason: Assigned to worker worker-1)
    [Health] Worker worker-1 (node-name) dead - no heartbeat for 2m30s (threshold: 2m)
    [Cleanup] Job 42 timed out (last activity: 2026-01-02 12:34:56)
    [Cleanup] Found 3 orphaned jobs
    [Retry] Job 42: attempt 2 in 10s (retry 2 of 3, reason: broken pipe)

The log stores no text for a transition that explains itself. The line gets its reason here, off the
hot path.

Levels: expected events are information; failures, lost or suspected workers and repairs are
warnings; the metadata that agents keep reporting is for debugging.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, NamedTuple

from windlass.domain.lifecycle.states import RETRYING, STATE_BY_CODE, State
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_duration


class EventKind(IntEnum):
    """What an event is about. The numbers are stored; never reuse one."""

    JOB = 1  # one transition of one job
    WORKER = 2  # enrolment, incarnation, health, drain, removal
    WORKFLOW = 3  # a workflow's state
    LOG = 4  # a job's log became committed or lost
    WATCHDOG = 5
    POOL = 6
    QUEUE = 7  # paused, resumed, reweighted
    PRIORITY = 8  # a job's adjustment
    LOOP = 9  # what a maintenance loop found, such as orphans
    SUPERSEDE = 10  # a new job superseded another
    SCHEDULE = 11  # created, paused, removed; a slot was started, skipped or missed
    TEMPLATE = 12  # a version was added, or all were removed
    REACTION = 13  # a reaction to the end of a workflow
    ACCESS = 14  # a token or code was created, or a token revoked


class Event(NamedTuple):
    """One row of the log; `seq` is 0 until the store has numbered it.

    `source` and `to` are state codes (0 for none). `data` is a JSON object as text, if a replay or
    a log line needs more than the columns.
    """

    seq: int
    at: int
    kind: int
    job: int
    attempt: int
    worker: int
    incarnation: int
    source: int
    to: int
    reason: str | None
    actor: str | None
    data: str | None

    @property
    def details(self) -> dict[str, Any]:
        """Returns `data` decoded; empty if there is none."""
        found: dict[str, Any] = json.loads(self.data) if self.data else {}
        return found


def is_hand_back(event: Event, data: Mapping[str, Any]) -> bool:
    """Returns True if this event ends an attempt that no worker started; `data` is the event's."""
    if event.to == State.QUEUED.code:
        return data.get("counts") == "returned"
    return bool(data.get("handed_back"))


class Moves(NamedTuple):
    """The same transitions of many jobs, which stores write in bulk.

    In the log they are one event per step and job, step by step.
    """

    at: int
    worker: int
    incarnation: int
    steps: tuple[tuple[int, int], ...]
    jobs: Sequence[int]
    attempts: Sequence[int]
    reason: str | None = None
    actor: str | None = None
    data: str | None = None


def expand(moves: Moves) -> Iterator[Event]:
    """Yields the single events of `moves`, in order."""
    kind = int(EventKind.JOB)
    for source, to in moves.steps:
        for job, attempt in zip(moves.jobs, moves.attempts, strict=True):
            yield Event(
                0, moves.at, kind, job, attempt, moves.worker, moves.incarnation, source, to,
                moves.reason, moves.actor, moves.data,
            )  # fmt: skip


class Level(IntEnum):
    """The levels of a log, with the numbers that Python's logging uses."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40
    OFF = 50  # above everything that is logged


_BAD_ENDS: Final = frozenset(
    state.code for state in (State.TIMED_OUT, State.FAILED, State.REJECTED)
)
_JOB: Final = int(EventKind.JOB)
_ORDINARY: Final = frozenset(
    state.code for state in (State.QUEUED, State.ASSIGNED, State.RUNNING, State.COMPLETED)
)
_BAD_STATUS: Final = (
    '"status":"offline"', '"status":"unhealthy"', '"status":"probation"'
)  # fmt: skip


def level_of(event: Event) -> Level:
    """Returns how important an event is."""
    if event.kind == _JOB:
        if event.to in _ORDINARY:
            return Level.INFO
        return Level.WARNING if event.to in _BAD_ENDS or _has_failed(event) else Level.INFO
    if event.kind == EventKind.WORKER:
        return _of_worker(event)
    if event.kind == EventKind.LOG:
        return Level.WARNING if '"state":"lost"' in (event.data or "") else Level.INFO
    orphans = event.kind == EventKind.LOOP and event.actor == "cleanup"
    return Level.WARNING if orphans or event.kind == EventKind.WATCHDOG else Level.INFO


def _has_failed(event: Event) -> bool:
    """Returns True for a retry that counts, or that waits for something missing."""
    data = event.data or ""
    return event.to == RETRYING and ('"retry":' in data or '"failure":"resource"' in data)


def _of_worker(event: Event) -> Level:
    data = event.data or ""
    if '"metadata":' in data and '"status":' not in data:
        return Level.DEBUG
    expected = event.reason == "has stopped" or '"static":' in data  # a worker requested by a pool
    return Level.WARNING if not expected and any(s in data for s in _BAD_STATUS) else Level.INFO


class BaselineKind(IntEnum):
    """What a baseline row describes. The numbers are stored."""

    HEAD = 0  # the last event it covers, and totals that belong to no single row
    JOB = 1
    WORKER = 2
    WORKFLOW = 3
    LIMIT = 4


class BaselineRow(NamedTuple):
    """The state of one object after the removed events; `body` is JSON."""

    kind: int
    id: int
    body: str


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
        active = datetime.fromtimestamp(data["last_activity"] / 1000, UTC)
        at = active.strftime("%Y-%m-%d %H:%M:%S")
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
