"""`Jobs`: the rows of `jobs` themselves and the attempts beside them."""

import pytest

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import COMPLETED, attempt, facts, job_end, new_job
from windlass.domain.rows.records import JobRecord, JobTry
from windlass.domain.values.ids import AttemptNo, JobId
from windlass.store.sql.transaction import WriteTx

BIGGEST_RANK = 2**41 * 1_000_000


def test_a_submitted_job_is_told_with_every_column(store: Driver) -> None:
    row = new_job(1, idle_ms=9_000, supersedes=44)
    store.transact(lambda tx: tx.jobs.insert([row]))
    assert store.transact(lambda tx: tx.jobs.lock([1])) == {1: facts(row)}
    assert store.transact(lambda tx: tx.jobs.share([1])) == {1: facts(row)}
    assert store.transact(lambda tx: tx.jobs.read([1])) == {1: facts(row)}
    assert store.snapshot().jobs == (
        JobRecord(facts(row), None, None, None, 0, None, None, None, None, row.spec),
    )


def test_numbers_keep_their_full_width(store: Driver) -> None:
    low = new_job(2**53, rank=-BIGGEST_RANK, base=-1_000_000, created_at=2**45)
    high = new_job(2**53 + 1, rank=BIGGEST_RANK, limit=2**40, supersedes=2**53)
    store.transact(lambda tx: tx.jobs.insert([low, high]))
    told = store.transact(lambda tx: tx.jobs.lock([low.id, high.id]))
    assert told == {low.id: facts(low), high.id: facts(high)}


@pytest.mark.parametrize("method", ["read", "lock", "share"])
def test_jobs_are_told_ascending_and_unknown_ones_left_out(store: Driver, method: str) -> None:
    rows = [new_job(3), new_job(1), new_job(2)]
    store.transact(lambda tx: tx.jobs.insert(rows))
    told = store.transact(lambda tx: getattr(tx.jobs, method)([3, 99, 1]))
    assert list(told.items()) == [(1, facts(rows[1])), (3, facts(rows[0]))]


def test_specs_come_back_byte_for_byte(store: Driver) -> None:
    specs = {1: b"{}", 2: '{"name":"Łódź \\u0000 ✓"}'.encode(), 3: b'{"a": ' + b"1" * 9_999 + b"}"}
    rows = [new_job(job, spec=spec) for job, spec in specs.items()]
    store.transact(lambda tx: tx.jobs.insert(rows))
    assert store.transact(lambda tx: tx.jobs.specs([1, 2, 3, 4])) == specs


def test_an_id_is_never_taken_twice(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.insert([new_job(1)]))
    before = store.snapshot()
    with refused():
        store.transact(lambda tx: tx.jobs.insert([new_job(2), new_job(1, rank=5)]))
    assert store.snapshot() == before


def test_a_try_moves_the_counters_of_its_job_only(store: Driver) -> None:
    rows = [new_job(job) for job in (1, 2, 3)]
    store.transact(lambda tx: tx.jobs.insert(rows))
    tries = [
        JobTry(JobId(1), AttemptNo(5), 4, 3, 2, 7, "[[9,1000]]"),
        JobTry(JobId(3), AttemptNo(1), 0, 0, 1, 7, None),
    ]
    store.transact(lambda tx: tx.jobs.note_tries(tries))
    assert store.transact(lambda tx: tx.jobs.lock([1, 2, 3])) == {
        1: facts(
            rows[0], attempt=5, failed=4, lost=3, returned=2, handed_back=7, excluded="[[9,1000]]"
        ),
        2: facts(rows[1]),
        3: facts(rows[2], attempt=1, returned=1, handed_back=7),
    }


def test_a_try_may_forget_the_excluded_workers(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.insert([new_job(1)]))
    store.transact(
        lambda tx: tx.jobs.note_tries([JobTry(JobId(1), AttemptNo(1), 0, 0, 1, 7, "[[9,1000]]")])
    )
    store.transact(
        lambda tx: tx.jobs.note_tries([JobTry(JobId(1), AttemptNo(2), 1, 0, 1, 7, None)])
    )
    assert store.transact(lambda tx: tx.jobs.lock([1]))[1].excluded is None


def test_an_ended_job_keeps_everything_its_end_says(store: Driver) -> None:
    row, end = new_job(1), job_end(1)
    store.transact(lambda tx: tx.jobs.insert([row, new_job(2)]))
    store.transact(
        lambda tx: tx.jobs.note_tries([JobTry(JobId(1), AttemptNo(2), 1, 1, 6, 7, "[[9,1000]]")])
    )
    store.transact(lambda tx: tx.jobs.end([end]))
    ended = facts(
        row,
        state=end.state,
        flags=end.flags,
        attempt=end.attempt,
        failed=end.failed,
        lost=end.lost,
        returned=6,
        handed_back=7,
        worker=end.worker,
        incarnation=end.incarnation,
        excluded="[[9,1000]]",
    )
    told = store.transact(lambda tx: tx.jobs.lock([1, 2]))
    assert told == {1: ended, 2: facts(new_job(2))}
    assert store.transact(lambda tx: tx.jobs.share([1])) == {1: ended}
    assert store.transact(lambda tx: tx.jobs.read([1])) == {1: ended}
    assert store.snapshot().jobs[0] == JobRecord(
        ended,
        end.assigned_at,
        end.started_at,
        end.finished_at,
        end.failure,
        end.exit_code,
        end.message,
        end.reason,
        end.result,
        row.spec,
    )


def test_jobs_end_together_each_in_its_own_way(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.insert([new_job(1), new_job(2)]))
    bare = job_end(
        2,
        state=COMPLETED,
        worker=None,
        incarnation=None,
        exit_code=None,
        message=None,
        reason=None,
        result=None,
    )
    store.transact(lambda tx: tx.jobs.end([bare, job_end(1, exit_code=0, result=b"")]))
    first, second = store.snapshot().jobs
    assert (first.exit_code, first.result, first.facts.state) == (0, b"", job_end(1).state)
    assert (second.exit_code, second.message, second.reason, second.result) == (None,) * 4
    assert (second.facts.state, second.facts.worker) == (COMPLETED, None)


def test_a_submit_and_its_end_in_one_transaction(store: Driver) -> None:
    async def reject(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(1)])
        await tx.jobs.end([job_end(1)])

    store.transact(reject)
    assert store.snapshot().jobs[0].facts.state == job_end(1).state


def test_attempts_come_back_ascending_by_number(store: Driver) -> None:
    full = attempt(1, 1_000_001, exit_code=3, message="lost", failure=4, started_at=None)
    rows = [full, attempt(1, 1), attempt(2, 7), attempt(1, 2)]
    store.transact(lambda tx: tx.jobs.record_attempts(rows))
    told = store.transact(lambda tx: tx.jobs.attempts([2, 1]))
    assert told == {1: [rows[1], rows[3], full], 2: [rows[2]]}
    assert store.snapshot().attempts == (rows[1], rows[3], full, rows[2])


def test_a_job_without_attempts_has_none(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.record_attempts([attempt(1, 1)]))
    assert store.transact(lambda tx: tx.jobs.attempts([2])).get(2, []) == []


def test_an_attempt_is_recorded_once(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.record_attempts([attempt(1, 1)]))
    with refused():
        store.transact(lambda tx: tx.jobs.record_attempts([attempt(1, 1, worker=5)]))
    assert store.snapshot().attempts == (attempt(1, 1),)


def test_a_new_priority_changes_one_job(store: Driver) -> None:
    rows = [new_job(1), new_job(2)]
    store.transact(lambda tx: tx.jobs.insert(rows))
    store.transact(lambda tx: tx.jobs.set_priority(2, 17, age_from=88, rank=-99, flags=11))
    changed = facts(rows[1], adjustment=17, age_from=88, rank=-99, flags=11)
    assert store.transact(lambda tx: tx.jobs.lock([1, 2])) == {1: facts(rows[0]), 2: changed}


def test_a_job_gets_another_timeout(store: Driver) -> None:
    rows = [new_job(1), new_job(2), new_job(3)]
    store.transact(lambda tx: tx.jobs.insert(rows))
    store.transact(lambda tx: tx.jobs.set_timeouts([(2, None), (1, 4_000)]))
    changed = {1: facts(rows[0], timeout_ms=4_000), 2: facts(rows[1], timeout_ms=None)}
    assert store.transact(lambda tx: tx.jobs.lock([1, 2, 3])) == {**changed, 3: facts(rows[2])}


def test_a_superseded_job_names_its_successor(store: Driver) -> None:
    rows = [new_job(1), new_job(2, supersedes=1)]
    store.transact(lambda tx: tx.jobs.insert(rows))
    store.transact(lambda tx: tx.jobs.set_superseded([(1, 2)]))
    told = store.transact(lambda tx: tx.jobs.lock([1, 2]))
    assert told == {1: facts(rows[0], superseded_by=2), 2: facts(rows[1])}


def test_changes_of_unknown_jobs_change_nothing(store: Driver) -> None:
    async def change(tx: WriteTx) -> None:
        await tx.jobs.note_tries([JobTry(JobId(9), AttemptNo(1), 1, 1, 1, 7, None)])
        await tx.jobs.set_priority(9, 1, 1, 1, 1)
        await tx.jobs.set_superseded([(9, 1)])
        await tx.jobs.set_timeouts([(9, 1)])

    store.transact(lambda tx: tx.jobs.insert([new_job(1)]))
    before = store.snapshot()
    store.transact(change)
    assert store.snapshot() == before
