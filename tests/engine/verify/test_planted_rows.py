"""For each table, a row that does not agree with the log: the checker sees it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.verify.history import History, healthy
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import KEPT_WHILE_RUNNING, KeyRow
from windlass.domain.values.ids import JobId, LeaseNo
from windlass.engine.verify.check import judge
from windlass.store.sql.snapshot import Snapshot

Doctor = Callable[[History], Snapshot]


def with_job(history: History, job: int, **columns: Any) -> Snapshot:
    """The snapshot with other facts of one job."""
    rows = tuple(
        row._replace(facts=row.facts._replace(**columns)) if row.facts.id == job else row
        for row in history.snapshot.jobs
    )
    return history.snapshot._replace(jobs=rows)


def with_first(history: History, table: str, **columns: Any) -> Snapshot:
    """The snapshot with another first row of one table."""
    first, *rest = getattr(history.snapshot, table)
    return history.snapshot._replace(**{table: (first._replace(**columns), *rest)})


def without(history: History, table: str) -> Snapshot:
    """The snapshot without the first row of one table."""
    return history.snapshot._replace(**{table: getattr(history.snapshot, table)[1:]})


def in_two_places(history: History) -> Snapshot:
    snapshot = history.snapshot
    return snapshot._replace(parked=(*snapshot.parked, snapshot.ready[0]))


def ended_but_ready(history: History) -> Snapshot:
    ready = history.snapshot.ready
    return history.snapshot._replace(
        ready=(*ready, ready[0]._replace(job=JobId(history.jobs.plain)))
    )


def unknown_job_is_ready(history: History) -> Snapshot:
    ready = history.snapshot.ready
    return history.snapshot._replace(ready=(*ready, ready[0]._replace(job=JobId(9_999))))


def kept_wait_without_a_run(history: History) -> Snapshot:
    return with_first(history, "waits", manual=KEPT_WHILE_RUNNING)


def kept_wait_of_an_ended_job(history: History) -> Snapshot:
    first, *_ = history.snapshot.waits
    kept = first._replace(job=JobId(history.jobs.plain), manual=KEPT_WHILE_RUNNING)
    return history.snapshot._replace(waits=(*history.snapshot.waits, kept))


def a_job_beside_a_suspect(history: History) -> Snapshot:
    first, *rest = history.snapshot.leases
    beside = first._replace(job=JobId(9_998), lease=LeaseNo(first.lease + 1))
    return history.snapshot._replace(leases=(first._replace(suspicion=1), beside, *rest))


def ready_at_another_rank(history: History) -> Snapshot:
    return with_first(history, "ready", rank=1)


def behind_what_waits_for_it(history: History) -> Snapshot:
    """`second` waits for `newer`, which stands nowhere near it, in both of its rows."""
    late = 2**60
    snapshot = with_job(history, history.jobs.newer, rank=late)
    ready = (t._replace(rank=late) if t.job == history.jobs.newer else t for t in snapshot.ready)
    return snapshot._replace(ready=tuple(ready))


def key_names_another(history: History) -> Snapshot:
    return history.snapshot._replace(keys=(KeyRow("default", "k", history.jobs.plain, ""),))


def key_is_lost(history: History) -> Snapshot:
    return without(history, "keys")


def counters(history: History, **changed: int) -> Snapshot:
    values = {**dict(history.snapshot.counters), **changed}
    return history.snapshot._replace(counters=tuple(values.items()))


PLANTED: list[tuple[str, str, Doctor]] = [
    ("S20", "two places", in_two_places),
    ("S20", "no place", lambda h: without(h, "ready")),
    ("S20", "ended but ready", ended_but_ready),
    ("S20", "unknown job", unknown_job_is_ready),
    ("S20", "kept wait", kept_wait_without_a_run),
    ("S20", "kept wait of an ended job", kept_wait_of_an_ended_job),
    ("S13", "beside a suspect", a_job_beside_a_suspect),
    ("S20", "rank", ready_at_another_rank),
    ("S20", "order", behind_what_waits_for_it),
    ("S20", "shape", lambda h: with_first(h, "parked", shape=99)),
    ("S20", "workflow", lambda h: with_first(h, "due", ticket=h.snapshot.ready[0])),
    ("S20", "limit", lambda h: with_first(h, "leases", limit=9)),
    ("S20", "lease state", lambda h: with_first(h, "leases", state=State.ASSIGNED.code)),
    ("S20", "lease holder", lambda h: with_first(h, "leases", incarnation=9)),
    ("S20", "state", lambda h: with_job(h, h.jobs.plain, state=State.FAILED.code)),
    ("S20", "attempt", lambda h: with_job(h, h.jobs.plain, attempt=4)),
    ("S20", "failed", lambda h: with_job(h, h.jobs.failed, failed=0)),
    ("S20", "lost", lambda h: with_job(h, h.jobs.failed, lost=1)),
    ("S20", "handed_back", lambda h: with_job(h, h.jobs.failed, handed_back=1)),
    ("S20", "returned", lambda h: with_job(h, h.jobs.failed, returned=1)),
    ("S20", "base", lambda h: with_job(h, h.jobs.plain, base=0)),
    ("S20", "adjustment", lambda h: with_job(h, h.jobs.keyed, adjustment=0)),
    ("S20", "worker", lambda h: with_job(h, h.jobs.plain, worker=9)),
    ("S20", "superseded by", lambda h: with_job(h, h.jobs.first, superseded_by=None)),
    ("S20", "supersedes", lambda h: with_job(h, h.jobs.newer, supersedes=None)),
    ("S20", "closed attempts", lambda h: without(h, "attempts")),
    ("S20", "worker status", lambda h: with_first(h, "workers", status=4)),
    ("S20", "worker gone", lambda h: without(h, "workers")),
    ("S20", "workflow state", lambda h: with_first(h, "workflows", state=4)),
    ("S20", "workflow run", lambda h: with_first(h, "workflows", run=7)),
    ("S20", "paused queue", lambda h: with_first(h, "queues", paused=0)),
    ("S19", "limit count", lambda h: with_first(h, "limits", leased=0)),
    ("S19", "workflow counts", lambda h: with_first(h, "workflows", counts=(0,) * 13)),
    ("S19", "unmet", lambda h: with_first(h, "waits", unmet=2)),
    ("S19", "depth", lambda h: counters(h, **{"depth:default": 7})),
    ("S19", "depth of an unknown queue", lambda h: counters(h, **{"depth:none": 1})),
    ("S2", "key", key_names_another),
    ("S2", "lost key", key_is_lost),
]


@pytest.mark.parametrize(
    ("invariant", "doctor"),
    [(invariant, doctor) for invariant, _, doctor in PLANTED],
    ids=[name for _, name, _ in PLANTED],
)
def test_a_planted_row_is_found(invariant: str, doctor: Doctor) -> None:
    history = healthy()
    snapshot = doctor(history)
    assert snapshot != history.snapshot
    found = judge(history.events, snapshot)
    assert invariant in {violation.invariant for violation in found}


def test_an_empty_log_does_not_explain_the_state() -> None:
    history = healthy()
    found = judge((), history.snapshot)
    assert {v.job for v in found if v.message == "is not in the log"} == {
        row.facts.id for row in history.snapshot.jobs
    }
