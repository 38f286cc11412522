"""How important events are, for a log with levels.

What is expected is information. Failures, lost or suspected workers and repairs are warnings.
Metadata that agents report all the time is for debugging.
"""

from enum import IntEnum
from typing import Final

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Event, EventKind


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
_RETRYING: Final = State.RETRYING.code
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
    """Returns True for a retry that counts, or that waits for what is missing."""
    data = event.data or ""
    return event.to == _RETRYING and ('"retry":' in data or '"failure":"resource"' in data)


def _of_worker(event: Event) -> Level:
    data = event.data or ""
    if '"metadata":' in data and '"status":' not in data:
        return Level.DEBUG
    expected = event.reason == "has stopped" or '"static":' in data  # one that a pool requests
    return Level.WARNING if not expected and any(s in data for s in _BAD_STATUS) else Level.INFO
