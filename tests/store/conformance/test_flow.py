"""`Flow`: jobs with no ties, in bulk, as the other roles would write them one by one."""

from collections.abc import Sequence
from typing import Any

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import (
    ASSIGNED,
    CANCELING,
    COMPLETED,
    QUEUED,
    RUNNING,
    attempt,
    completion,
    facts,
    grant,
    new_job,
    wait,
)
from windlass.domain.rows.events import Event, EventKind, Moves
from windlass.domain.rows.records import JobRecord, JobTry, NewJob, Ticket
from windlass.domain.values.ids import AttemptNo, JobId, WorkflowId
from windlass.store.sql.transaction import WriteTx

NOW = 70_000


def plain_job(job: int, **changes: Any) -> NewJob:
    return new_job(job, workflow=None, limit=None, **changes)


def place_of(row: NewJob) -> Ticket:
    return Ticket(row.shape, row.rank, row.id, AttemptNo(0), row.workflow, row.limit, None)


def lease(store: Driver, rows: Sequence[NewJob], state: int = RUNNING) -> None:
    """Enter these jobs and give them to worker 3 in its incarnation 4, as attempt 5."""

    async def work(tx: WriteTx) -> None:
        await tx.flow.enter(sorted(rows))
        grants = [grant(place_of(row), 3, 4, 5) for row in rows]
        await tx.leases.grant(grants, state, NOW - 100, 10)

    store.transact(work)


def test_entered_jobs_are_submitted_and_ready(store: Driver) -> None:
    rows = [plain_job(1, shape=3, rank=-7), plain_job(2, idle_ms=6, supersedes=9), new_job(4)]
    store.transact(lambda tx: tx.flow.enter(rows))
    shown = store.snapshot()
    assert [record.facts for record in shown.jobs] == [facts(row) for row in rows]
    assert [record.spec for record in shown.jobs] == [row.spec for row in rows]
    assert sorted(shown.ready) == sorted(place_of(row) for row in rows)
    assert store.transact(lambda tx: tx.places.count_ready(7, 1)) == 1


def test_entering_leaves_other_jobs_where_they_are(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.insert([plain_job(1), plain_job(3), plain_job(5)]))
    store.transact(lambda tx: tx.flow.enter([plain_job(2), plain_job(4), plain_job(6)]))
    assert [place.job for place in store.snapshot().ready] == [2, 4, 6]


def test_a_known_job_does_not_enter(store: Driver) -> None:
    store.transact(lambda tx: tx.flow.enter([plain_job(2)]))
    before = store.snapshot()
    with refused():
        store.transact(lambda tx: tx.flow.enter([plain_job(1), plain_job(2)]))
    assert store.snapshot() == before


def test_a_plain_job_completes_with_every_column(store: Driver) -> None:
    row = plain_job(1)
    lease(store, [row])
    store.transact(
        lambda tx: tx.jobs.note_tries([JobTry(JobId(1), AttemptNo(4), 3, 2, 1, 7, "[[9,1]]")])
    )
    done = [completion(1, exit_code=0, result=b'{"ok":true}')]
    assert store.transact(lambda tx: tx.flow.complete(NOW, done)) == [1]
    ended = facts(
        row,
        state=COMPLETED,
        attempt=5,
        failed=3,
        lost=2,
        returned=1,
        handed_back=7,
        worker=3,
        incarnation=4,
        excluded="[[9,1]]",
    )
    result = b'{"ok":true}'
    expected = JobRecord(ended, NOW - 100, NOW - 100, NOW, 0, 0, None, None, result, row.spec)
    assert store.snapshot().jobs == (expected,)
    assert store.snapshot().leases == ()
    assert store.transact(lambda tx: tx.jobs.lock([1])) == {1: ended}


def test_many_complete_at_once_and_are_told_ascending(store: Driver) -> None:
    jobs = [job * 37 % 500 + 1 for job in range(500)]
    lease(store, [plain_job(job) for job in jobs])
    done = [completion(job, result=b"%d" % job if job % 3 else None) for job in jobs]
    assert store.transact(lambda tx: tx.flow.complete(NOW, done)) == list(range(1, 501))
    shown = store.snapshot()
    assert [(row.facts.id, row.result) for row in shown.jobs] == [
        (job, b"%d" % job if job % 3 else None) for job in range(1, 501)
    ]
    assert shown.leases == ()


def test_each_completion_keeps_its_own_exit_code(store: Driver) -> None:
    lease(store, [plain_job(job) for job in (1, 2, 3)])
    codes = {1: None, 2: 0, 3: -9}
    done = [completion(job, exit_code=code) for job, code in codes.items()]
    store.transact(lambda tx: tx.flow.complete(NOW, done))
    assert {row.facts.id: row.exit_code for row in store.snapshot().jobs} == codes


def test_what_something_hangs_on_is_left_alone(store: Driver) -> None:
    rows = [
        plain_job(1)._replace(workflow=WorkflowId(8)),
        plain_job(2)._replace(limit=8),
        plain_job(3),
        plain_job(4),
        plain_job(5),
    ]
    lease(store, rows)
    store.transact(lambda tx: tx.jobs.add_dependents({3: [9]}))
    store.transact(lambda tx: tx.places.add_waits([wait(5)]))
    before = store.snapshot()
    done = [completion(job) for job in (5, 3, 2, 1, 77)]
    assert store.transact(lambda tx: tx.flow.complete(NOW, done)) == []
    assert store.snapshot() == before
    assert store.transact(lambda tx: tx.flow.complete(NOW, [*done, completion(4)])) == [4]


def test_a_stale_report_completes_nothing(store: Driver) -> None:
    lease(store, [plain_job(1)])
    before = store.snapshot()

    async def report(tx: WriteTx) -> list[list[int]]:
        stale = [completion(1, attempt=4), completion(1, worker=2), completion(1, incarnation=3)]
        return [await tx.flow.complete(NOW, [done]) for done in stale]

    assert store.transact(report) == [[], [], []]
    assert store.snapshot() == before


def test_only_a_running_attempt_completes(store: Driver) -> None:
    lease(store, [plain_job(1)], state=ASSIGNED)
    lease(store, [plain_job(2)])
    store.transact(lambda tx: tx.leases.mark([2], CANCELING, "by hand"))
    store.transact(lambda tx: tx.flow.enter([plain_job(3)]))
    before = store.snapshot()
    done = [completion(job) for job in (1, 2, 3)]
    assert store.transact(lambda tx: tx.flow.complete(NOW, done)) == []
    assert store.snapshot() == before


def test_a_completion_is_taken_once(store: Driver) -> None:
    lease(store, [plain_job(1)])
    assert store.transact(lambda tx: tx.flow.complete(NOW, [completion(1)])) == [1]
    before = store.snapshot()
    assert store.transact(lambda tx: tx.flow.complete(NOW + 1, [completion(1)])) == []
    assert store.snapshot() == before


def test_moves_are_logged_step_by_step(store: Driver) -> None:
    steps = ((QUEUED, ASSIGNED), (ASSIGNED, RUNNING))
    moves = Moves(NOW, 3, 4, steps, jobs=[5, 2, 9], attempts=[1, 7, 1])
    store.transact(lambda tx: tx.flow.log(moves))
    expected = [
        Event(seq, NOW, EventKind.JOB, job, number, 3, 4, source, to, None, None, None)
        for seq, (source, to, job, number) in enumerate(
            ((source, to, job, n) for source, to in steps for job, n in ((5, 1), (2, 7), (9, 1))),
            start=1,
        )
    ]
    assert store.transact(lambda tx: tx.log.read(0, 99)) == expected


def test_equal_moves_keep_the_order_of_the_jobs(store: Driver) -> None:
    jobs = [job * 37 % 500 + 1 for job in range(500)]
    moves = Moves(NOW, 0, 0, ((0, QUEUED),), jobs, (0,) * 500)
    store.transact(lambda tx: tx.flow.log(moves))
    told = store.transact(lambda tx: tx.log.read(0, 999))
    assert [(row.seq, row.job) for row in told] == list(enumerate(jobs, start=1))


def test_nothing_in_bulk_is_nothing(store: Driver) -> None:
    async def work(tx: WriteTx) -> list[int]:
        await tx.flow.enter([])
        await tx.flow.log(Moves(NOW, 0, 0, ((0, QUEUED),), (), ()))
        return await tx.flow.complete(NOW, [])

    store.transact(lambda tx: tx.jobs.record_attempts([attempt(1, 1)]))
    before = store.snapshot()
    assert store.transact(work) == []
    assert store.snapshot() == before
    assert store.transact(lambda tx: tx.log.read(0, 9)) == []
