"""Events: the rows of the append-only log, from which the state can be replayed.

An event says what happened, never what should happen next. Job events carry both states of one
transition; the other kinds say in `reason` and `data` what changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from windlass.domain.lifecycle.states import State


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

    `source` and `to` are state codes (0 for none). `data` is a JSON object as text, used if a
    replay or a log line needs more than the columns.
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


def is_hand_back(event: Event, data: Mapping[str, Any]) -> bool:
    """Returns True if an attempt ended here that no worker started; `data` is that of the event."""
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
