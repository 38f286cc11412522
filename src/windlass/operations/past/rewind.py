"""A job as it was: its row of today, with everything taken back that happened later."""

from collections.abc import Sequence
from typing import Any

from windlass.domain.job.job import QUARANTINED
from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    ASSIGNED,
    QUEUED,
    RETRYING,
    RUNNING,
    TERMINAL_CODES,
)
from windlass.domain.rows.events import Event, EventKind, is_hand_back
from windlass.domain.rows.records import JobRecord, Lease
from windlass.domain.values.ids import AttemptNo, JobId, LeaseNo, WorkerId


class Course:
    """What the events of one job up to a moment tell."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.state = 0
        self.attempt = AttemptNo(0)
        self.failed = self.lost = self.returned = self.handed_back = 0
        self.adjustment: int | None = None
        self.superseded_by: JobId | None = None
        self.lease: Lease | None = None
        self.closed: set[int] = set()  # attempts that have ended
        self.is_whole = bool(events) and events[0].source == 0
        for event in events:
            self._apply(event)

    def _apply(self, event: Event) -> None:
        data = event.details
        if event.kind == EventKind.PRIORITY:
            self.adjustment = data["adjustment"]
        elif event.kind == EventKind.SUPERSEDE:
            self.superseded_by = data["by"]
        elif event.kind == EventKind.JOB:
            self._move(event, data)

    def _move(self, event: Event, data: dict[str, Any]) -> None:
        if not event.source:
            self.adjustment = data.get("adjustment", 0)
        counts = data.get("counts")
        self.failed += counts == "failed"
        self.lost += counts == "lost"
        self.returned += counts == "returned" and event.to in (QUEUED, RETRYING)
        self.handed_back += is_hand_back(event, data)
        if event.to == ASSIGNED:
            self.attempt = AttemptNo(event.attempt)
            self.lease = Lease(
                JobId(event.job), self.attempt, LeaseNo(0), WorkerId(event.worker),
                event.incarnation, event.to, event.at, None, None, None, None, None, None, None,
            )  # fmt: skip
        elif self.lease is not None and event.to in ACTIVE_CODES:
            started = event.at if event.to == RUNNING else self.lease.started_at
            self.lease = self.lease._replace(state=event.to, started_at=started)
        elif event.source in ACTIVE_CODES:
            self.closed.add(event.attempt)
            self.lease = None
        self.state = event.to


def rewind(record: JobRecord, course: Course) -> JobRecord:
    """Returns a job as it was after the events of its course."""
    facts = record.facts._replace(superseded_by=course.superseded_by)
    if course.adjustment is not None:
        facts = facts._replace(adjustment=course.adjustment)
    attempts = tuple(row for row in record.attempts if row.number in course.closed)
    shown = record._replace(
        facts=facts, state=course.state, attempts=attempts, not_before=None, progress=None,
        dynamic=None, lease=None,
    )  # fmt: skip
    if course.state in TERMINAL_CODES:
        return shown
    facts = facts._replace(
        state=None, flags=facts.flags & ~QUARANTINED, attempt=course.attempt, worker=None,
        incarnation=None, failed=course.failed, lost=course.lost, returned=course.returned,
        handed_back=course.handed_back,
    )  # fmt: skip
    return shown._replace(
        facts=facts, assigned_at=None, started_at=None, finished_at=None, failure=0,
        exit_code=None, message=None, reason=None, result=None, artifacts=(), log=None,
        lease=course.lease, worker=None,
    )  # fmt: skip
