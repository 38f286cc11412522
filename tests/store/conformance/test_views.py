"""`Views`: jobs and workers as people see them, and lists that cost the same at any size."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import (
    ASSIGNED,
    COMPLETED,
    FAILED,
    QUEUED,
    RETRYING,
    RUNNING,
    artifact,
    attempt,
    due,
    grant,
    job_end,
    log_row,
    new_job,
    ticket,
    wait,
    worker,
)
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.files import Dynamic, Progress
from windlass.domain.rows.records import KEPT_WHILE_RUNNING, JobRecord, KeyRow
from windlass.domain.rows.views import JobFilter, JobPage, WorkerView
from windlass.domain.values.ids import JobId
from windlass.store.sql.transaction import WriteTx

BLOCKED = State.BLOCKED.code
CANCELED = State.CANCELED.code
OPEN = BLOCKED, RETRYING, RUNNING, ASSIGNED  # those that are not queued
ROW = JobRecord._fields.index("state")  # the first field that is not of the row
SHAPES = [
    Shape(namespace=namespace, queue=queue, task=task, requires=(), resources=())
    for namespace, queue, task in [
        ("team", "live", "shell"), ("team", "batch", "python"), ("other", "live", "shell"),
    ]
]  # fmt: skip
EVERY_STATE = {
    1: QUEUED, 2: BLOCKED, 3: QUEUED, 4: RETRYING, 5: QUEUED, 6: RUNNING, 7: ASSIGNED,
    8: COMPLETED, 9: FAILED, 10: CANCELED,
}  # fmt: skip


async def fill(tx: WriteTx) -> None:
    """One job in each place and two shapes for each."""
    bodies = {str(n): msgspec.json.encode(shape) for n, shape in enumerate(SHAPES)}
    await tx.catalog.intern_shapes(bodies)
    await tx.workers.insert(worker("idle"))
    await tx.workers.insert(worker("busy"))
    spec = msgspec.json.encode({"task": "shell", "name": "n1", "labels": {"a": "1", "b": "2"}})
    rows = [
        new_job(job, shape=1 + job % 3, workflow=1 if job % 2 else None, limit=None)
        for job in EVERY_STATE
    ]
    rows[4] = rows[4]._replace(spec=spec)
    rows[5] = rows[5]._replace(
        spec=msgspec.json.encode({"task": "shell", "labels": {"a": "1"}, "submitted_by": "eve"})
    )
    await tx.jobs.insert(rows)
    places = {job: ticket(job, shape=1 + job % 3) for job in EVERY_STATE}
    await tx.places.add_ready([places[job] for job in (1, 6, 7)])
    await tx.places.add_waits([wait(2, not_before=77, ticket=places[2])])
    planned, late = due(3, at=88), due(4, at=99, state=RETRYING)
    await tx.places.add_due([row._replace(ticket=places[row.job]) for row in (planned, late)])
    await tx.places.add_parked([places[5]._replace(limit=1)])
    await tx.leases.grant([grant(places[6], worker=2, number=3)], RUNNING, 1_000, 10)
    await tx.leases.grant([grant(places[7], worker=2)], ASSIGNED, 1_000, 10)
    ends = {8: COMPLETED, 9: FAILED, 10: CANCELED}
    await tx.jobs.end([job_end(job, state=state, worker=1) for job, state in ends.items()])


def ids(views: Sequence[JobRecord]) -> list[int]:
    return [view.facts.id for view in views]


def shown_alone(store: Driver, job: int) -> JobRecord | None:
    return store.read(lambda tx: tx.views.job(job))


def page_of(store: Driver, wanted: JobFilter, cursor: int, limit: int) -> JobPage:
    return store.read(lambda tx: tx.views.jobs(wanted, cursor, limit))


def listed(store: Driver, limit: int = 100, **wanted: Any) -> list[int]:
    page = store.read(lambda tx: tx.views.jobs(JobFilter(**wanted), 0, limit))
    return ids(page.jobs)


def test_a_job_is_shown_in_the_state_its_place_means(store: Driver) -> None:
    store.transact(fill)
    page = store.read(lambda tx: tx.views.jobs(JobFilter(), 0, 100))
    assert {view.facts.id: view.state for view in page.jobs} == EVERY_STATE
    assert ids(page.jobs) == sorted(EVERY_STATE, reverse=True)
    assert page.next == 0
    shown = {view.facts.id: view for view in page.jobs}
    assert [shown[JobId(job)].not_before for job in (1, 2, 3, 4)] == [None, 77, 88, 99]
    assert [shown[JobId(job)].worker for job in (1, 6, 8)] == [None, "busy", "idle"]


def test_each_job_is_shown_alone_as_in_a_list(store: Driver) -> None:
    store.transact(fill)
    page = store.read(lambda tx: tx.views.jobs(JobFilter(), 0, 100))
    for view in page.jobs:
        job = view.facts.id
        assert shown_alone(store, job) == view
        row = next(r for r in store.snapshot().jobs if r.facts.id == job)
        assert view[:ROW] == row[:ROW]
    assert store.read(lambda tx: tx.views.job(99)) is None


def test_a_job_is_shown_with_what_belongs_to_its_newest_attempt(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        await fill(tx)
        await tx.jobs.record_attempts([attempt(6, 2, worker=1), attempt(6, 1, worker=2)])
        for number in (2, 3):
            await tx.files.put_log(log_row(6, number))
        await tx.files.put_progress(Progress(6, 3, b"3", 1))
        await tx.files.put_dynamic([Dynamic(6, 2, b"{}")])
        await tx.files.add_artifacts([artifact(6, "a", attempt=3)])
        rows = [artifact(9, "a", attempt=4), artifact(9, "b", attempt=3), artifact(9, "c")]
        await tx.files.add_artifacts(rows)

    store.transact(add)
    running = store.read(lambda tx: tx.views.job(6))
    assert running is not None
    assert running.lease is not None
    assert running.lease.attempt == 3
    assert running.log == log_row(6, 3)
    assert running.progress == Progress(6, 3, b"3", 1)
    assert running.dynamic is None
    assert [row.number for row in running.attempts] == [1, 2]
    assert running.workers == ((1, "idle"), (2, "busy"))
    assert running.artifacts == ()
    ended = store.read(lambda tx: tx.views.job(9))
    assert ended is not None
    assert ended.artifacts == (artifact(9, "a", attempt=4),)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"states": (QUEUED,)}, [5, 3, 1]),
        ({"states": (BLOCKED,)}, [2]),
        ({"states": (RETRYING,)}, [4]),
        ({"states": (RUNNING,)}, [6]),
        ({"states": (ASSIGNED, RUNNING)}, [7, 6]),
        ({"states": (COMPLETED,)}, [8]),
        ({"states": (FAILED,)}, [9]),
        ({"states": (CANCELED,)}, [10]),
        ({"states": (FAILED, BLOCKED, RUNNING, RETRYING)}, [9, 6, 4, 2]),
        ({"states": (COMPLETED, QUEUED, RUNNING)}, [8, 6, 5, 3, 1]),
        ({"states": (State.ABORTED.code,)}, []),
        ({"dead": True}, [9]),
        ({"dead": True, "states": (COMPLETED,)}, []),
        ({"workflow": 1}, [9, 7, 5, 3, 1]),
        ({"workflow": 1, "states": (QUEUED,)}, [5, 3, 1]),
        ({"workflow": 2}, []),
        ({"queue": "batch"}, [10, 7, 4, 1]),
        ({"queue": "batch", "states": (CANCELED, RETRYING)}, [10, 4]),
        ({"task": "python"}, [10, 7, 4, 1]),
        ({"namespaces": ("other",)}, [8, 5, 2]),
        ({"namespaces": ("other", "team"), "queue": "live"}, [9, 8, 6, 5, 3, 2]),
        ({"namespaces": ()}, []),
        ({"task": "unknown"}, []),
        ({"name": "n1"}, [5]),
        ({"labels": (("a", "1"),)}, [6, 5]),
        ({"labels": (("a", "1"), ("b", "2"))}, [5]),
        ({"labels": (("a", "2"),)}, []),
        ({"submitted_by": "eve"}, [6]),
        ({"submitted_by": "eve", "states": (BLOCKED,)}, []),
    ],
)
def test_lists_are_filtered(store: Driver, wanted: dict[str, Any], expected: list[int]) -> None:
    store.transact(fill)
    assert listed(store, **wanted) == expected


def test_a_key_leads_to_its_job_within_the_namespaces(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        await fill(tx)
        rows = [KeyRow("team", "k", 6, "d"), KeyRow("other", "k", 5, "d")]
        await tx.jobs.claim_keys(rows)

    store.transact(add)
    assert listed(store, key="k") == [6, 5]
    assert listed(store, key="k", namespaces=("other",)) == [5]
    assert listed(store, key="k", states=(RUNNING,)) == [6]
    assert listed(store, key="unknown") == []


@pytest.mark.parametrize("wanted", [{}, {"states": (QUEUED,)}, {"states": (RUNNING, QUEUED)}])
def test_pages_follow_each_other(store: Driver, wanted: dict[str, Any]) -> None:
    store.transact(fill)
    expected = listed(store, **wanted)
    found: list[int] = []
    cursor = 0
    for _ in range(20):
        page = page_of(store, JobFilter(**wanted), cursor, 2)
        assert len(page.jobs) <= 2
        found += ids(page.jobs)
        cursor = page.next
        if not cursor:
            break
    assert found == expected


def test_a_search_stops_after_a_while_and_says_where_to_go_on(store: Driver) -> None:
    rows = [new_job(job) for job in range(1, 12_001)]
    store.transact(lambda tx: tx.jobs.insert(rows))
    store.transact(lambda tx: tx.jobs.end([job_end(5)]))
    wanted = JobFilter(name="nobody's")
    page = store.read(lambda tx: tx.views.jobs(wanted, 0, 10))
    assert page.jobs == []
    assert 0 < page.next < 12_000
    pages = 1
    while page.next:
        page = page_of(store, wanted, page.next, 10)
        pages += 1
    assert pages < 6
    assert listed(store, dead=True) == [5]


def test_workers_are_shown_with_their_leases(store: Driver) -> None:
    store.transact(fill)
    rows = store.snapshot().workers
    expected = [WorkerView(rows[0], 0), WorkerView(rows[1], 2)]
    assert store.read(lambda tx: tx.views.workers_with_counts()) == expected


def test_depths_are_those_of_the_queues(store: Driver) -> None:
    store.transact(lambda tx: tx.log.bump({"depth:live": 3, "depth:träge": 1, "retries": 9}))
    store.transact(lambda tx: tx.log.bump({"depth:live": -1}))
    assert store.read(lambda tx: tx.views.queue_depths()) == {"live": 2, "träge": 1}


def test_a_census_counts_open_jobs_by_shape_and_state_and_workers_by_status(store: Driver) -> None:
    store.transact(fill)
    found = store.read(lambda tx: tx.views.census(10))
    places = {(1 + job % 3, state): 1 for job, state in EVERY_STATE.items() if state in OPEN}
    assert found.jobs == sorted((*key, count) for key, count in places.items())
    assert found.workers == [(1, 2, 2 * worker("any").slots)]


def test_a_census_looks_at_no_more_rows_than_allowed(store: Driver) -> None:
    async def block(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job, shape=1) for job in range(1, 6)])
        await tx.places.add_waits([wait(job, ticket=ticket(job, shape=1)) for job in range(1, 6)])

    store.transact(block)
    assert store.read(lambda tx: tx.views.census(3)).jobs == [(1, BLOCKED, 3)]
    assert store.read(lambda tx: tx.views.census(9)).jobs == [(1, BLOCKED, 5)]


def test_a_wait_that_is_kept_while_its_job_runs_is_not_blocked(store: Driver) -> None:
    async def keep(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(1, shape=1)])
        await tx.places.add_waits([wait(1, manual=KEPT_WHILE_RUNNING, ticket=ticket(1, shape=1))])

    store.transact(keep)
    assert store.read(lambda tx: tx.views.census(9)).jobs == []


def test_moments_tell_where_jobs_stand_and_when_they_ran(store: Driver) -> None:
    store.transact(fill)
    found = store.read(lambda tx: tx.views.moments([*EVERY_STATE, 999]))
    assert {one.job: one.state for one in found} == EVERY_STATE
    running, done = (next(one for one in found if one.job == job) for job in (6, 8))
    assert (running.attempt, running.worker, running.finished_at) == (3, 2, None)
    assert (done.worker, done.manual) == (1, 0)
    assert done.finished_at is not None
    blocked = next(one for one in found if one.job == 2)
    assert (blocked.unmet, blocked.started_at) == (1, None)
    assert store.read(lambda tx: tx.views.moments([])) == []


def test_the_newest_job_of_a_workflow_is_known(store: Driver) -> None:
    store.transact(fill)
    assert store.read(lambda tx: tx.workflows.last_job(1)) == 9
    assert store.read(lambda tx: tx.workflows.last_job(7)) == 0
