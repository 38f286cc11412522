"""`Views`: what explains a wait, read without a lock."""

from functools import partial

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import QUEUED, RUNNING, event, grant, new_job, ticket, worker
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import RateRow
from windlass.domain.rows.views import ReadySpan
from windlass.store.sql.transaction import ReadTx, WriteTx


def test_the_fleet_is_told_by_name_with_what_each_holds(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        for name in ("b", "a", "c"):
            await tx.workers.insert(worker(name, reason="why", slots=3, static='{"z":1}'))
        places = [ticket(job) for job in (1, 2)]
        await tx.jobs.insert([new_job(place.job) for place in places])
        await tx.places.add_ready(places)
        await tx.leases.grant([grant(place, worker=2) for place in places], RUNNING, 1_000, 10)

    store.transact(fill)
    told = [tuple(row) for row in store.read(lambda tx: tx.views.fleet())]
    assert [(row[0], row[1], row[4]) for row in told] == [(2, "a", 2), (1, "b", 0), (3, "c", 0)]
    first = worker("a")
    assert told[0][2:] == (first.status, 3, 2, "why", '{"z":1}', first.dynamic)


def before(store: Driver, shapes: list[int], rank: int, job: int, most: int = 100) -> int:
    return store.read(lambda tx: tx.views.ready_before(shapes, rank, job, most))


def test_ready_jobs_before_a_place_are_counted_by_rank_and_id(store: Driver) -> None:
    rows = [ticket(job, shape=1 + job % 2, rank=10 * (job // 3)) for job in range(1, 13)]
    store.transact(lambda tx: tx.places.add_ready(rows))
    for shapes in ([1], [2], [1, 2], [3]):
        for rank, job in ((0, 0), (10, 4), (10, 5), (40, 0), (2**60, 0)):
            expected = [r for r in rows if r.shape in shapes and (r.rank, r.job) < (rank, job)]
            assert before(store, shapes, rank, job) == len(expected)
    assert before(store, [], 50, 1) == 0


def test_ready_jobs_within_parts_of_lines_are_counted_up_to_a_limit(store: Driver) -> None:
    rows = [ticket(job, shape=1 + job % 2, rank=10 * (job // 3)) for job in range(1, 13)]
    store.transact(lambda tx: tx.places.add_ready(rows))
    places = [(-(2**62), 0), (0, 2), (10, 4), (10, 5), (40, 0), (2**60, 0)]
    spans = [ReadySpan(shape, *a, *b) for shape in (2, 1, 3) for a in places for b in places]
    expected = [
        sum(r.shape == span.shape and span[1:3] <= (r.rank, r.job) < span[3:5] for r in rows)
        for span in spans
    ]
    assert max(expected) == 6
    for most in (100, 2):
        told = store.read(partial(_within, spans=spans, most=most))
        assert told == [min(count, most) for count in expected]


async def _within(tx: ReadTx, spans: list[ReadySpan], most: int) -> list[int]:
    return await tx.views.ready_within(spans, most)


def test_the_count_of_many_shapes_ends_where_it_was_told_to(store: Driver) -> None:
    rows = [ticket(job, shape=1 + job % 120, rank=-5) for job in range(1, 601)]
    store.transact(lambda tx: tx.places.add_ready(rows))
    shapes = list(range(1, 121))
    assert before(store, shapes, 0, 0, 1_000) == 600
    assert before(store, shapes, 0, 0, 100) == 100
    assert before(store, [1], 0, 0, 3) == 3


def test_the_holders_of_a_limit_are_the_leases_under_it(store: Driver) -> None:
    places = [ticket(job, limit=1 + job % 2) for job in (5, 3, 4, 1)]

    async def lease(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(place.job, limit=place.limit) for place in places])
        await tx.places.add_ready(places)
        await tx.leases.grant([grant(place) for place in places], RUNNING, 1_000, 10)

    store.transact(lease)
    assert store.read(lambda tx: tx.views.holders(2, 10)) == [1, 3, 5]
    assert store.read(lambda tx: tx.views.holders(2, 2)) == [1, 3]
    assert store.read(lambda tx: tx.views.holders(9, 2)) == []


def test_events_of_the_fleet_leave_out_those_of_jobs_and_workflows(store: Driver) -> None:
    worker = Event(0, 1, EventKind.WORKER, 0, 0, 7, 8, 0, 0, "enrolled", None, '{"status":"x"}')
    queue = Event(0, 2, EventKind.QUEUE, 0, 0, 0, 0, 0, 0, "paused", "ops", None)
    flow = Event(0, 3, EventKind.WORKFLOW, 0, 0, 0, 0, 0, 0, "began", None, None)
    job = event(4, to=QUEUED)
    store.transact(lambda tx: tx.log.append([job, worker, flow, queue, job, worker]))
    told = store.read(lambda tx: tx.views.fleet_events(0, 100, 10))
    assert told == [worker._replace(seq=2), queue._replace(seq=4), worker._replace(seq=6)]
    assert [row.seq for row in store.read(lambda tx: tx.views.fleet_events(2, 5, 10))] == [4]
    assert [row.seq for row in store.read(lambda tx: tx.views.fleet_events(0, 9, 2))] == [2, 4]


def test_events_of_a_worker_and_of_pools_come_newest_first_within_bounds(store: Driver) -> None:
    worker = Event(0, 1, EventKind.WORKER, 0, 0, 7, 8, 0, 0, "enrolled", None, None)
    pool = Event(0, 2, EventKind.POOL, 0, 0, 0, 0, 0, 0, "asks", "pools", '{"pool":"p"}')
    taken = event(4, to=QUEUED)._replace(worker=7)
    other = worker._replace(worker=9)
    store.transact(lambda tx: tx.log.append([taken, pool, worker, other, pool, taken]))

    def of_worker(after: int, until: int, most: int) -> list[int]:
        found = store.read(lambda tx: tx.views.worker_events(7, after, until, most))
        assert all(one.worker == 7 for one in found)
        return [one.seq for one in found]

    def of_pools(after: int, until: int, most: int) -> list[int]:
        return [e.seq for e in store.read(lambda tx: tx.views.pool_events(after, until, most))]

    assert of_worker(0, 100, 10) == [6, 3, 1]
    assert (of_worker(0, 100, 2), of_worker(1, 5, 10), of_worker(6, 9, 1)) == ([6, 3], [3], [])
    assert (of_pools(0, 100, 10), of_pools(0, 100, 1), of_pools(2, 4, 9)) == ([5, 2], [5], [])


def test_a_rate_that_was_never_used_is_not_made_by_looking(store: Driver) -> None:
    assert store.read(lambda tx: tx.views.rate("team", "api")) is None
    row = RateRow("team", "api", 2, "[5,6]")

    async def use(tx: WriteTx) -> None:
        await tx.placement.lock_rates([("team", "api")], wait=True)
        await tx.placement.put_rates([row])

    store.transact(use)
    assert store.read(lambda tx: tx.views.rate("team", "api")) == row
    assert store.read(lambda tx: tx.views.rate("other", "api")) is None
    assert len(store.snapshot().rates) == 1
