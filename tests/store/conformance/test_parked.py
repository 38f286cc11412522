"""`Places`: jobs beyond their concurrency limit."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import facts_at, ticket
from windlass.domain.values.ids import ShapeId
from windlass.store.sql.places import Probe
from windlass.store.sql.transaction import WriteTx


def test_a_parked_job_is_told_with_every_column(store: Driver) -> None:
    place = ticket(1, shape=2, rank=-3, attempt=4, workflow=5, limit=6, excluded="[[7,8]]")
    store.transact(lambda tx: tx.places.add_parked([place]))
    assert store.transact(lambda tx: tx.places.best_parked(6, 1)) == [place]
    assert store.snapshot().parked == (place,)


def test_the_best_of_each_shape_under_one_limit(store: Driver) -> None:
    places = [
        ticket(1, limit=1, shape=2, rank=30),
        ticket(2, limit=1, shape=2, rank=10),
        ticket(4, limit=1, shape=2, rank=20),
        ticket(3, limit=1, shape=2, rank=20),
        ticket(5, limit=1, shape=1, rank=99),
        ticket(6, limit=2, shape=2, rank=1),
        ticket(7, limit=4, shape=2, rank=1),
    ]
    store.transact(lambda tx: tx.places.add_parked(places))
    best = store.transact(lambda tx: tx.places.best_parked(1, 2))
    assert [place.job for place in best] == [5, 2, 3]
    best = store.transact(lambda tx: tx.places.best_parked(1, 3))
    assert [place.job for place in best] == [5, 2, 3, 4]
    assert store.transact(lambda tx: tx.places.best_parked(3, 2)) == []
    assert len(store.snapshot().parked) == len(places)


def test_taken_jobs_are_removed_and_absent_ones_passed_over(store: Driver) -> None:
    places = [ticket(1, limit=2), ticket(2, limit=1), ticket(3, limit=1, shape=9)]
    store.transact(lambda tx: tx.places.add_parked(places))
    wanted = [facts_at(place) for place in (places[2], ticket(8, limit=1), places[0])]
    assert store.transact(lambda tx: tx.places.take_parked(wanted)) == [places[0], places[2]]
    assert store.transact(lambda tx: tx.places.take_parked(wanted)) == []
    assert store.snapshot().parked == (places[1],)


def test_a_job_is_looked_for_where_it_stands(store: Driver) -> None:
    place = ticket(1, limit=2, shape=3, rank=10)
    store.transact(lambda tx: tx.places.add_parked([place]))
    elsewhere = [place._replace(limit=4), place._replace(shape=ShapeId(4)), place._replace(rank=4)]
    wanted = [facts_at(other) for other in elsewhere]
    assert store.transact(lambda tx: tx.places.take_parked(wanted)) == []
    store.transact(lambda tx: tx.places.unpark(elsewhere))
    assert store.snapshot().parked == (place,)


def test_unparking_removes_exactly_these(store: Driver) -> None:
    places = [ticket(job, limit=1 + job % 2, shape=1 + job % 3) for job in range(1, 9)]
    store.transact(lambda tx: tx.places.add_parked(places))
    store.transact(lambda tx: tx.places.unpark([places[0], places[5]]))
    left = [place for place in places if place.job not in (1, 6)]
    assert sorted(store.snapshot().parked) == sorted(left)


def test_parking_moves_jobs_out_of_ready(store: Driver) -> None:
    places = [ticket(1, limit=5), ticket(2, limit=5, attempt=3, excluded="[[1,2]]"), ticket(3)]

    async def park(tx: WriteTx) -> None:
        found = await tx.places.peek([Probe(1, places[0].rank, 0, 2)])
        await tx.places.park(found)

    store.transact(lambda tx: tx.places.add_ready(places))
    store.transact(park)
    assert store.snapshot().ready == (places[2],)
    assert store.snapshot().parked == (places[0], places[1])
    assert store.transact(lambda tx: tx.places.count_ready(5, 1)) == 0


def test_parked_jobs_are_neither_ready_nor_counted(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_parked([ticket(1, limit=2)]))
    assert store.transact(lambda tx: tx.places.heads()) == []
    assert store.transact(lambda tx: tx.places.count_ready(2, 1)) == 0


def test_the_limits_under_which_jobs_are_parked(store: Driver) -> None:
    places = [ticket(job, limit=limit) for job, limit in ((1, 7), (2, 3), (3, 7), (4, 5))]
    store.transact(lambda tx: tx.places.add_parked(places))
    assert sorted(store.transact(lambda tx: tx.limits.parked())) == [3, 5, 7]
    store.transact(lambda tx: tx.places.unpark([places[0], places[3]]))
    assert sorted(store.transact(lambda tx: tx.limits.parked())) == [3, 7]


def test_the_worst_ready_job_under_a_limit_is_the_last_of_its_shape(store: Driver) -> None:
    places = [
        ticket(1, limit=1, rank=50),
        ticket(2, limit=1, rank=70),
        ticket(3, limit=1, rank=70),
        ticket(4, limit=2, rank=90),
        ticket(5, limit=1, rank=90, shape=2),
    ]
    store.transact(lambda tx: tx.places.add_ready(places))
    assert store.transact(lambda tx: tx.places.worst_ready(1, 1)) == places[2]
    assert store.transact(lambda tx: tx.places.worst_ready(1, 2)) == places[4]
    assert store.transact(lambda tx: tx.places.worst_ready(1, 3)) is None
    assert store.transact(lambda tx: tx.places.worst_ready(9, 1)) is None
