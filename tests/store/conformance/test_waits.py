"""`Places`: blocked jobs and the conditions they wait for."""

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import ticket, wait
from windlass.domain.rows.records import Wait
from windlass.domain.values.ids import JobId
from windlass.store.sql.transaction import WriteTx


def freed(rows: list[Wait]) -> list[Wait]:
    """What `meet` returned, without the counts, which are of no use any more."""
    return [row._replace(unmet=0, manual=0) for row in rows]


def test_a_blocked_job_is_told_with_every_column(store: Driver) -> None:
    place = ticket(1, shape=2, rank=-3, attempt=4, workflow=5, limit=6, excluded="[[7,8]]")
    row = Wait(JobId(1), unmet=2, manual=1, not_before=9_000, age_from=10_000, ticket=place)
    store.transact(lambda tx: tx.places.add_waits([row]))
    assert store.transact(lambda tx: tx.places.waiting([1])) == {1: row}
    assert store.snapshot().waits == (row,)


def test_waiting_leaves_out_jobs_that_do_not_wait(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(3), wait(1), wait(2)]))
    told = store.transact(lambda tx: tx.places.waiting([3, 8, 1]))
    assert list(told.items()) == [(1, wait(1)), (3, wait(3))]


def test_a_job_waits_in_one_row(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(1)]))
    with refused():
        store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=5)]))
    assert store.snapshot().waits == (wait(1),)


def test_meeting_some_conditions_leaves_the_job_waiting(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=5), wait(2, unmet=5)]))
    assert store.transact(lambda tx: tx.places.meet({1: 3})) == []
    assert store.snapshot().waits == (wait(1, unmet=2), wait(2, unmet=5))


def test_meeting_the_last_condition_frees_the_job_once(store: Driver) -> None:
    row = wait(1, unmet=2, not_before=77)
    store.transact(lambda tx: tx.places.add_waits([row]))
    assert store.transact(lambda tx: tx.places.meet({1: 1})) == []
    assert freed(store.transact(lambda tx: tx.places.meet({1: 1}))) == [row._replace(unmet=0)]
    assert store.transact(lambda tx: tx.places.meet({1: 1})) == []
    assert store.snapshot().waits == ()


def test_all_conditions_may_be_met_at_once(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=1_500)]))
    assert len(store.transact(lambda tx: tx.places.meet({1: 1_500}))) == 1


def test_freed_jobs_come_back_ascending(store: Driver) -> None:
    rows = [wait(job, unmet=1 + job % 2) for job in range(1, 41)]
    store.transact(lambda tx: tx.places.add_waits(rows))
    told = store.transact(lambda tx: tx.places.meet(dict.fromkeys(range(50, 0, -1), 1)))
    assert [row.job for row in told] == list(range(2, 41, 2))
    assert store.snapshot().waits == tuple(wait(job, unmet=1) for job in range(1, 41, 2))


def test_a_job_that_does_not_wait_is_passed_over(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(2)]))
    told = store.transact(lambda tx: tx.places.meet({1: 1, 2: 1, 3: 1}))
    assert freed(told) == [wait(2, unmet=0)]


def test_meeting_twice_in_one_transaction_counts_twice(store: Driver) -> None:
    async def meet_twice(tx: WriteTx) -> list[int]:
        first = await tx.places.meet({1: 1})
        second = await tx.places.meet({1: 1})
        return [len(first), len(second)]

    store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=2)]))
    assert store.transact(meet_twice) == [0, 1]


def test_a_manual_condition_is_one_of_the_unmet(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=2, manual=1)]))
    assert store.transact(lambda tx: tx.places.meet({1: 1}, manual=True)) == []
    assert store.snapshot().waits == (wait(1, unmet=1, manual=0),)
    assert freed(store.transact(lambda tx: tx.places.meet({1: 1}))) == [wait(1, unmet=0)]


def test_a_dependency_does_not_meet_the_manual_condition(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=2, manual=1)]))
    assert store.transact(lambda tx: tx.places.meet({1: 1})) == []
    assert store.snapshot().waits == (wait(1, unmet=1, manual=1),)
    told = store.transact(lambda tx: tx.places.meet({1: 1}, manual=True))
    assert freed(told) == [wait(1, unmet=0)]


def test_a_manual_condition_is_met_once(store: Driver) -> None:
    rows = [wait(1, unmet=3, manual=1), wait(2, unmet=1)]
    store.transact(lambda tx: tx.places.add_waits(rows))
    store.transact(lambda tx: tx.places.meet({1: 1}, manual=True))
    assert store.transact(lambda tx: tx.places.meet({1: 1, 2: 1}, manual=True)) == []
    assert store.snapshot().waits == (wait(1, unmet=2), wait(2, unmet=1))


def test_taken_jobs_are_removed_and_absent_ones_passed_over(store: Driver) -> None:
    rows = [wait(job, unmet=job, not_before=job * 10) for job in (1, 2, 3)]
    store.transact(lambda tx: tx.places.add_waits(rows))
    assert store.transact(lambda tx: tx.places.take_waits([3, 8, 1])) == [rows[0], rows[2]]
    assert store.transact(lambda tx: tx.places.take_waits([1, 3])) == []
    assert store.snapshot().waits == (rows[1],)
