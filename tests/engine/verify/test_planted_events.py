"""For each invariant over the log, a history in which it is broken: the checker sees it."""

from collections.abc import Callable

import pytest

from tests.engine.verify.history import History, healthy
from windlass.domain.config import Config
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.verify.check import judge

Doctor = Callable[[History], list[Event]]


def code(name: str) -> int:
    return State(name).code


def moves(history: History, job: int) -> list[Event]:
    return [e for e in history.events if e.job == job and e.kind == EventKind.JOB]


def append(history: History, *extra: Event) -> list[Event]:
    """The log with more events at its end, numbered on."""
    last = history.events[-1].seq
    return [*history.events, *(e._replace(seq=last + n) for n, e in enumerate(extra, 1))]


def replace(history: History, old: Event, **columns: object) -> list[Event]:
    return [e._replace(**columns) if e is old else e for e in history.events]  # type: ignore[arg-type]


def find(history: History, job: int, to: str) -> Event:
    return next(e for e in moves(history, job) if e.to == code(to))


def test_a_healthy_history_has_no_violation() -> None:
    history = healthy()
    assert judge(history.events, history.snapshot) == []


def job_is_gone(history: History) -> list[Event]:
    return append(history, history.events[-1]._replace(
        kind=EventKind.JOB, job=9_999, source=0, to=code("queued"), attempt=0, data=None
    ))  # fmt: skip


def attempt_given_twice(history: History) -> list[Event]:
    given = find(history, history.jobs.failed, "assigned")
    return append(history, given)


def second_outcome(history: History) -> list[Event]:
    return append(history, find(history, history.jobs.plain, "completed"))


def attempt_falls(history: History) -> list[Event]:
    given = find(history, history.jobs.failed, "assigned")
    return append(history, given._replace(attempt=0))


def stale_worker_speaks(history: History) -> list[Event]:
    done = find(history, history.jobs.plain, "completed")
    return replace(history, done, incarnation=7)


def stale_attempt_speaks(history: History) -> list[Event]:
    done = find(history, history.jobs.plain, "completed")
    return replace(history, done, attempt=7)


def attempts_overlap(history: History) -> list[Event]:
    given = find(history, history.jobs.limited, "assigned")
    return append(history, given._replace(attempt=2))


def leaves_a_terminal_state(history: History) -> list[Event]:
    done = find(history, history.jobs.plain, "completed")
    return append(history, done._replace(source=code("completed"), to=code("queued")))


def skips_a_state(history: History) -> list[Event]:
    started = find(history, history.jobs.plain, "running")
    return [e for e in history.events if e is not started]


def starts_before_its_dependency(history: History) -> list[Event]:
    ended = find(history, history.jobs.first, "failed")
    given = find(history, history.jobs.plain, "assigned")
    early = given._replace(job=history.jobs.second, seq=0)
    at = history.events.index(ended)
    return [*history.events[:at], early, *history.events[at:]]


def join_fires_twice(history: History) -> list[Event]:
    return append(history, find(history, history.jobs.second, "queued"),
                  find(history, history.jobs.second, "queued"))  # fmt: skip


def new_attempt_after_a_cancel(history: History) -> list[Event]:
    given = find(history, history.jobs.canceled, "assigned")
    return append(history, given._replace(attempt=2))


def beyond_the_limit(history: History) -> list[Event]:
    given = find(history, history.jobs.limited, "assigned")
    return append(history, given._replace(job=history.jobs.parked))


def beyond_the_slots(history: History) -> list[Event]:
    enrolled = next(e for e in history.events if e.kind == EventKind.WORKER)
    fewer = (enrolled.data or "").replace('"slots":6', '"slots":1')
    return replace(history, enrolled, data=fewer)


def numbers_fall(history: History) -> list[Event]:
    return [*history.events, history.events[-1]]


PLANTED = [
    ("S1", job_is_gone),
    ("S3", attempt_given_twice),
    ("S3", second_outcome),
    ("S4", attempt_falls),
    ("S5", stale_worker_speaks),
    ("S5", stale_attempt_speaks),
    ("S6", attempts_overlap),
    ("S8", leaves_a_terminal_state),
    ("S8", skips_a_state),
    ("S10", starts_before_its_dependency),
    ("S11", join_fires_twice),
    ("S12", new_attempt_after_a_cancel),
    ("S13", beyond_the_limit),
    ("S13", beyond_the_slots),
    ("S20", numbers_fall),
]


@pytest.mark.parametrize(
    ("invariant", "doctor"), PLANTED, ids=[doctor.__name__ for _, doctor in PLANTED]
)
def test_a_planted_bug_is_found(invariant: str, doctor: Doctor) -> None:
    history = healthy()
    found = judge(doctor(history), history.snapshot)
    assert invariant in {violation.invariant for violation in found}


def test_attempts_beyond_the_limit_are_found() -> None:
    """S9: under a stricter policy the same history has one attempt too many."""
    history = healthy()
    given = find(history, history.jobs.failed, "assigned")
    queued = given._replace(source=code("retrying"), to=code("queued"), worker=0, incarnation=0)
    events = append(history, queued, given._replace(attempt=2))
    strict = Config(retry=RetryPolicy(max_retries=0))
    assert "S9" in {v.invariant for v in judge(events, history.snapshot, strict)}
    assert "S9" not in {v.invariant for v in judge(events, history.snapshot)}


def test_a_job_given_to_a_worker_that_cannot_run_it_is_found() -> None:
    """S14, by the metadata of the log and by the present one."""
    history = healthy()
    enrolled = next(e for e in history.events if e.kind == EventKind.WORKER)
    poorer = (enrolled.data or "").replace("gpu", "cpu")
    workers = tuple(w._replace(dynamic='{"cpu":true}') for w in history.snapshot.workers)
    snapshot = history.snapshot._replace(workers=workers)
    found = judge(replace(history, enrolled, data=poorer), snapshot)
    assert {v.job for v in found if v.invariant == "S14"} == {history.jobs.gpu}
    # Metadata that was reported since excuses it: the log does not hold every change.
    assert judge(replace(history, enrolled, data=poorer), history.snapshot) == []


def test_a_worker_that_may_not_claim_is_found() -> None:
    history = healthy()
    enrolled = next(e for e in history.events if e.kind == EventKind.WORKER)
    events = [e for e in history.events if e is not enrolled]
    assert "S5" in {v.invariant for v in judge(events, history.snapshot)}


def test_a_violation_names_the_event_and_the_job() -> None:
    history = healthy()
    found = judge(attempt_given_twice(history), history.snapshot)
    assert (history.jobs.failed, history.events[-1].seq + 1) in {(v.job, v.seq) for v in found}
