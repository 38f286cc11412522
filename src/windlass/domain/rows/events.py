"""Events: the rows of the append-only log, from which the state can be replayed.

An event says what happened, never what should happen next. Job events carry both states of one
transition; the other kinds say in `reason` and `data` what changed. If retention has removed the
first events, a replay starts from `BaselineRow`.

Levels: expected events are information; failures, lost or suspected workers and repairs are
warnings; the metadata that agents keep reporting is for debugging.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from windlass.domain.lifecycle.states import RETRYING, State


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
