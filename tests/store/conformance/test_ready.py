"""`Places`: jobs a worker may take now, in the order of rank and id within a shape."""

import pytest

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import facts_at, ticket
from windlass.domain.rows.records import Ticket
from windlass.domain.values.ids import ShapeId
from windlass.store.sql.places import Head, Probe
from windlass.store.sql.transaction import WriteTx

LOWEST = -(2**62)


def everything(shape: int, count: int = 1_000) -> Probe:
    return Probe(shape, LOWEST, 0, count)


def test_a_ready_job_is_told_with_every_column(store: Driver) -> None:
    place = ticket(1, shape=2, rank=-3, attempt=4, workflow=5, limit=6, excluded="[[7,8]]")
    store.transact(lambda tx: tx.places.add_ready([place]))
    assert store.transact(lambda tx: tx.places.peek([everything(2)])) == [place]
    assert store.snapshot().ready == (place,)


def test_peek_answers_in_the_order_of_rank_then_id(store: Driver) -> None:
    places = [ticket(1, rank=5), ticket(9, rank=-5), ticket(3, rank=0), ticket(2, rank=0)]
    store.transact(lambda tx: tx.places.add_ready(places))
    found = store.transact(lambda tx: tx.places.peek([everything(1)]))
    assert [place.job for place in found] == [9, 2, 3, 1]


def test_peek_answers_at_most_the_count(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_ready([ticket(job) for job in range(1, 8)]))
    found = store.transact(lambda tx: tx.places.peek([everything(1, count=3)]))
    assert [place.job for place in found] == [1, 2, 3]
    assert store.transact(lambda tx: tx.places.peek([everything(1, count=0)])) == []


@pytest.mark.parametrize(
    ("rank", "job", "expected"),
    [
        (10, 2, [2, 3, 1]),  # the bound itself is included
        (10, 3, [3, 1]),
        (10, 4, [1]),
        (10, 0, [2, 3, 1]),
        (11, 0, [1]),
        (11, 99, [1]),  # the id counts only at the same rank
        (20, 1, [1]),
        (20, 2, []),
        (21, 0, []),
    ],
)
def test_peek_begins_at_its_lower_bound(
    store: Driver, rank: int, job: int, expected: list[int]
) -> None:
    places = [ticket(1, rank=20), ticket(2, rank=10), ticket(3, rank=10), ticket(4, shape=2)]
    store.transact(lambda tx: tx.places.add_ready(places))
    found = store.transact(lambda tx: tx.places.peek([Probe(1, rank, job, 10)]))
    assert [place.job for place in found] == expected


def test_each_probe_looks_into_its_own_shape(store: Driver) -> None:
    places = [ticket(job, shape=1 + job % 3) for job in range(1, 31)]
    store.transact(lambda tx: tx.places.add_ready(places))
    probes = [everything(3, count=2), everything(7), Probe(1, 1_010, 0, 4)]
    found = store.transact(lambda tx: tx.places.peek(probes))
    by_shape = {shape: [p.job for p in found if p.shape == shape] for shape in (1, 2, 3)}
    assert by_shape == {1: [12, 15, 18, 21], 2: [], 3: [2, 5]}


def test_peek_takes_nothing_away(store: Driver) -> None:
    async def peek_twice(tx: WriteTx) -> list[list[Ticket]]:
        return [await tx.places.peek([everything(1)]) for _ in range(2)]

    store.transact(lambda tx: tx.places.add_ready([ticket(1), ticket(2)]))
    assert store.transact(peek_twice) == [[ticket(1), ticket(2)]] * 2
    assert store.snapshot().ready == (ticket(1), ticket(2))


def test_the_heads_are_the_best_of_each_shape(store: Driver) -> None:
    places = [ticket(job, shape=1 + job % 3, rank=-job // 9) for job in range(1, 31)]
    store.transact(lambda tx: tx.places.add_ready(places))
    best = {shape: min(p for p in places if p.shape == shape) for shape in (1, 2, 3)}
    heads = store.transact(lambda tx: tx.places.heads())
    assert sorted(heads) == [Head(shape, p.rank, p.job) for shape, p in best.items()]


def test_the_next_best_becomes_the_head(store: Driver) -> None:
    places = [ticket(1, shape=1), ticket(2, shape=2), ticket(3, shape=2)]
    store.transact(lambda tx: tx.places.add_ready(places))
    store.transact(lambda tx: tx.places.take_ready([facts_at(places[0]), facts_at(places[1])]))
    assert store.transact(lambda tx: tx.places.heads()) == [Head(2, 1_003, 3)]


def test_an_empty_store_has_no_heads(store: Driver) -> None:
    assert store.transact(lambda tx: tx.places.heads()) == []


def test_taken_jobs_are_removed_and_absent_ones_passed_over(store: Driver) -> None:
    places = [ticket(1, rank=30, attempt=2), ticket(2, shape=2), ticket(3, rank=10)]
    store.transact(lambda tx: tx.places.add_ready(places))
    wanted = [facts_at(place) for place in (places[2], ticket(8), places[0])]
    assert store.transact(lambda tx: tx.places.take_ready(wanted)) == [places[0], places[2]]
    assert store.transact(lambda tx: tx.places.take_ready(wanted)) == []
    assert store.snapshot().ready == (places[1],)


def test_a_job_is_looked_for_where_it_stands(store: Driver) -> None:
    place = ticket(1, shape=3, rank=10)
    store.transact(lambda tx: tx.places.add_ready([place]))
    elsewhere = [facts_at(place._replace(shape=ShapeId(4))), facts_at(place._replace(rank=11))]
    assert store.transact(lambda tx: tx.places.take_ready(elsewhere)) == []
    assert store.snapshot().ready == (place,)


def test_ready_jobs_are_counted_by_limit_and_shape(store: Driver) -> None:
    places = [ticket(job, shape=1 + job % 2, limit=job % 3 or None) for job in range(1, 13)]
    store.transact(lambda tx: tx.places.add_ready(places))
    gone = [facts_at(place) for place in places if place.job in (2, 4)]
    store.transact(lambda tx: tx.places.take_ready(gone))

    async def count(tx: WriteTx) -> dict[tuple[int, int], int]:
        pairs = [(limit, shape) for limit in (1, 2, 9) for shape in (1, 2, 9)]
        return {pair: await tx.places.count_ready(*pair) for pair in pairs}

    left: list[tuple[int | None, int]] = [(p.limit, p.shape) for p in places if p.job not in (2, 4)]
    assert store.transact(count) == {
        (limit, shape): left.count((limit, shape)) for limit in (1, 2, 9) for shape in (1, 2, 9)
    }


def test_a_job_is_ready_once(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_ready([ticket(1)]))
    with refused():
        store.transact(lambda tx: tx.places.add_ready([ticket(2), ticket(1, attempt=3)]))
    assert store.snapshot().ready == (ticket(1),)
