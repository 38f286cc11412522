"""Find the events of one job without an index that holds them all.

Such an index would cost every job a seventh of its way through the store. So it holds
only the unusual events; the others happened at times that the job's own rows know, and
events stand in the order of their times. Whether all were found is certain: the
transitions of a job form a chain from its beginning to where it stands now, and a
missing one leaves a gap. Only then is the whole log read. Where retention has removed
the oldest events, a chain may begin later, or have no events.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

import apsw

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Event, EventKind
from windlass.store.sql.session import maker
from windlass.store.sqlite.rows import Row
from windlass.store.sqlite.statements import QUERIES

JOB = int(EventKind.JOB)
NEW = 0
# Where a job without a lease may stand; its way there is among the unusual events, or
# is the first of all.
UNLEASED = frozenset(
    state.code for state in (State.BLOCKED, State.QUEUED, State.RETRYING, State.SUSPENDED)
)


def events_of_job(connection: apsw.Connection, job: int) -> list[Event]:
    """Returns all events of `job`, in order."""
    found = {event.seq: event for event in _events(connection, "rare_events_of_job", (job,))}
    times = _times(connection, job)
    for span in _spans(connection, times):
        for event in _events(connection, "events_of_job_between", (job, *span)):
            found[event.seq] = event
    events = [found[seq] for seq in sorted(found)]
    trimmed = bool(times) and _is_trimmed(connection, min(times))
    if is_whole(events, _standing(connection, job), trimmed):
        return events
    return _events(connection, "events_of_job", (job,))


def is_whole(events: Iterable[Event], standing: frozenset[int], trimmed: bool = False) -> bool:
    """Returns whether the transitions lead from a new job to one of the states in `standing`.

    With `trimmed` the first ones may be missing, or all of them.
    """
    moves = [event for event in events if event.kind == JOB]
    if not moves:
        return trimmed
    if (moves[0].source != NEW and not trimmed) or moves[-1].to not in standing:
        return False
    return all(before.to == after.source for before, after in pairwise(moves))


def _standing(connection: apsw.Connection, job: int) -> frozenset[int]:
    """Returns the states the job may be in now, so far as its outcome and its lease tell."""
    rows: list[Row] = connection.execute(QUERIES["job_standing"], (job,)).fetchall()
    if not rows:
        return frozenset()
    state: int | None = rows[0][0]
    return UNLEASED if state is None else frozenset({state})


def _times(connection: apsw.Connection, job: int) -> list[int]:
    rows: list[Row] = connection.execute(QUERIES["job_times"], (job,)).fetchall()
    return [at for (at,) in rows if at is not None]


def _is_trimmed(connection: apsw.Connection, created_at: int) -> bool:
    """Returns whether events as old as this may have been removed."""
    rows: list[Row] = connection.execute(QUERIES["oldest_event"]).fetchall()
    return bool(rows) and rows[0][0] > 1 and created_at <= rows[0][1]


def _spans(connection: apsw.Connection, times: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the numbers of the first and last event at each time, by halving the log."""
    newest: list[Row] = connection.execute(QUERIES["newest_event_seq"]).fetchall()
    log = range(1, newest[0][0] + 1)

    def time_of(seq: int) -> int:
        rows: list[Row] = connection.execute(QUERIES["event_time"], (seq,)).fetchall()
        return int(rows[0][0])

    return [
        (log[bisect_left(log, at, key=time_of)], bisect_left(log, at + 1, key=time_of))
        for at in times
        if log and at <= time_of(log[-1])
    ]


def _events(connection: apsw.Connection, query: str, bindings: tuple[int, ...]) -> list[Event]:
    return list(map(maker(Event), connection.execute(QUERIES[query], bindings)))
