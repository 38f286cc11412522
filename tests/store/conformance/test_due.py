"""`Places`: jobs that may not start before a time."""

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import RETRYING, due, ticket
from windlass.domain.rows.records import Due
from windlass.domain.values.ids import JobId


def jobs(rows: list[Due]) -> list[int]:
    return [row.job for row in rows]


def test_a_due_job_is_told_with_every_column(store: Driver) -> None:
    place = ticket(1, shape=2, rank=-3, attempt=4, workflow=5, limit=6, excluded="[[7,8]]")
    row = Due(9_000, JobId(1), RETRYING, place)
    store.transact(lambda tx: tx.places.add_due([row]))
    assert store.snapshot().due == (row,)
    assert store.transact(lambda tx: tx.places.pull_due(9_000, 1)) == [row]
    assert store.snapshot().due == ()


def test_a_job_is_pulled_at_its_time_and_not_before(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_due([due(1, at=500)]))
    assert store.transact(lambda tx: tx.places.pull_due(499, 10)) == []
    assert jobs(store.transact(lambda tx: tx.places.pull_due(500, 10))) == [1]
    assert store.transact(lambda tx: tx.places.pull_due(500, 10)) == []


def test_the_earliest_are_pulled_first_and_ties_by_job(store: Driver) -> None:
    rows = [due(1, at=700), due(9, at=500), due(2, at=600), due(3, at=500), due(4, at=900)]
    store.transact(lambda tx: tx.places.add_due(rows))
    assert jobs(store.transact(lambda tx: tx.places.pull_due(800, 3))) == [3, 9, 2]
    assert jobs(store.transact(lambda tx: tx.places.pull_due(800, 3))) == [1]
    assert store.snapshot().due == (due(4, at=900),)


def test_pulling_none_pulls_none(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_due([due(1, at=500)]))
    assert store.transact(lambda tx: tx.places.pull_due(600, 0)) == []
    assert len(store.snapshot().due) == 1


def test_the_next_due_time(store: Driver) -> None:
    assert store.transact(lambda tx: tx.places.next_due()) == 0
    store.transact(lambda tx: tx.places.add_due([due(1, at=700), due(2, at=600)]))
    assert store.transact(lambda tx: tx.places.next_due()) == 600
    store.transact(lambda tx: tx.places.take_due([2]))
    assert store.transact(lambda tx: tx.places.next_due()) == 700


def test_taken_jobs_are_removed_and_absent_ones_passed_over(store: Driver) -> None:
    rows = [due(1, at=900), due(2, at=500), due(3, at=500)]
    store.transact(lambda tx: tx.places.add_due(rows))
    assert store.transact(lambda tx: tx.places.take_due([3, 8, 1])) == [rows[0], rows[2]]
    assert store.transact(lambda tx: tx.places.take_due([3, 1])) == []
    assert store.snapshot().due == (rows[1],)


def test_a_job_is_due_once_at_a_time(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_due([due(1, at=500)]))
    with refused():
        store.transact(lambda tx: tx.places.add_due([due(1, at=500, state=RETRYING)]))
    assert store.snapshot().due == (due(1, at=500),)
