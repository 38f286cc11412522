"""`Placement`: loads of workers, limits of queues on leases, rates, reservations, shares."""

from functools import partial

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import RUNNING, completion, grant, new_job, ticket
from windlass.domain.rows.records import QueueRow, RateRow, Reservation
from windlass.domain.values.ids import JobId, ShapeId, WorkerId
from windlass.store.sql.placement import Load, Preemptible
from windlass.store.sql.transaction import WriteTx


async def reserve(tx: WriteTx, row: Reservation) -> bool:
    return await tx.placement.reserve(row)


async def weigh(tx: WriteTx, namespace: str, weight: int) -> None:
    await tx.placement.set_namespace_weight(namespace, weight)


def lease(store: Driver) -> None:
    """Jobs 1 to 5, of shapes 1, 2, 1, 2, 1; the first three at worker 1, the others at 2."""
    shapes = {1: 1, 2: 2, 3: 1, 4: 2, 5: 1}
    places = {job: ticket(job, shape=shape) for job, shape in shapes.items()}

    async def fill(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job, shape=shape) for job, shape in shapes.items()])
        await tx.places.add_ready(list(places.values()))
        grants = [grant(places[job], worker=1 if job < 4 else 2) for job in shapes]
        await tx.leases.grant(grants, RUNNING, 100, 10)

    store.transact(fill)


def test_loads_are_counted_by_worker_and_shape(store: Driver) -> None:
    lease(store)
    told = store.transact(lambda tx: tx.placement.loads([2, 1, 9]))
    assert told == [Load(1, 1, 2), Load(1, 2, 1), Load(2, 1, 1), Load(2, 2, 1)]
    assert store.transact(lambda tx: tx.placement.loads([])) == []
    assert store.transact(lambda tx: tx.placement.running()) == {1: 3, 2: 2}


def test_leases_are_bound_to_the_limit_of_their_queue_once(store: Driver) -> None:
    lease(store)
    assert store.transact(lambda tx: tx.placement.unbound([1])) == [1, 3, 5]
    store.transact(lambda tx: tx.placement.bind([1, 5, 99], 7))
    assert store.transact(lambda tx: tx.placement.unbound([1, 2])) == [2, 3, 4]
    assert store.transact(lambda tx: tx.placement.unbound([])) == []
    bound = {row.job: row.queue_limit for row in store.snapshot().leases}
    assert bound == {1: 7, 2: None, 3: None, 4: None, 5: 7}
    held = store.transact(lambda tx: tx.leases.lock([1, 2]))
    assert (held[1].queue_limit, held[2].queue_limit) == (7, None)


def test_a_bound_lease_is_not_completed_in_passing(store: Driver) -> None:
    lease(store)
    store.transact(lambda tx: tx.placement.bind([1], 7))
    done = [completion(job, 1, 1, 1, 0) for job in (1, 2)]
    told = store.transact(lambda tx: tx.flow.complete_tied(200, done))
    assert told == []
    assert len(store.snapshot().leases) == 5


def test_rates_are_made_when_they_are_first_locked(store: Driver) -> None:
    keys = [("zoo", "a"), ("team", "b"), ("team", "a")]
    told = store.transact(lambda tx: tx.placement.lock_rates(keys, wait=True))
    assert told == {key: RateRow(*key, 0, "[]") for key in sorted(keys)}
    changed = RateRow("team", "b", 3, "[1,2,3]")
    store.transact(lambda tx: tx.placement.put_rates([changed]))
    told = store.transact(lambda tx: tx.placement.lock_rates([("team", "b")], wait=False))
    assert told == {("team", "b"): changed}
    assert store.snapshot().rates == (
        RateRow("team", "a", 0, "[]"),
        changed,
        RateRow("zoo", "a", 0, "[]"),
    )


def test_one_worker_is_kept_for_a_job_and_one_job_for_a_worker(store: Driver) -> None:
    first = Reservation(worker=WorkerId(2), job=JobId(5), shape=ShapeId(1), since=70)
    assert store.transact(lambda tx: tx.placement.reserve(first)) is True
    for row in (first._replace(worker=WorkerId(3)), first._replace(job=JobId(6)), first):
        assert store.transact(partial(reserve, row=row)) is False
    second = Reservation(WorkerId(1), JobId(6), ShapeId(2), 71)
    assert store.transact(lambda tx: tx.placement.reserve(second)) is True
    assert store.transact(lambda tx: tx.placement.reservations()) == [second, first]
    store.transact(lambda tx: tx.placement.release([2, 9]))
    assert store.snapshot().reservations == (second,)


def test_weights_of_namespaces_are_set_and_changed(store: Driver) -> None:
    for namespace, weight in (("zoo", 2), ("team", 3), ("zoo", 5)):
        store.transact(partial(weigh, namespace=namespace, weight=weight))
    told = store.transact(lambda tx: tx.placement.namespace_weights())
    assert list(told.items()) == [("team", 3), ("zoo", 5)]
    assert store.snapshot().namespace_weights == (("team", 3), ("zoo", 5))


async def _put(tx: WriteTx, row: QueueRow) -> None:
    await tx.catalog.put_queue(row)


def test_a_queue_keeps_its_limits(store: Driver) -> None:
    row = QueueRow("batch", 10, 1, 4, 2, preempts=1, isolation="user", timeout_ms=90_000)
    for one in (row, row._replace(timeout_ms=0), row._replace(timeout_ms=None)):
        store.transact(partial(_put, row=one))
        assert store.transact(lambda tx: tx.catalog.queues()) == [one]


def test_running_jobs_that_may_be_preempted_are_told_youngest_first(store: Driver) -> None:
    lease(store)
    store.transact(lambda tx: tx.jobs.insert([new_job(6, flags=16, shape=3, rank=77)]))
    store.transact(lambda tx: tx.jobs.insert([new_job(7, flags=17)]))
    places = [ticket(6, shape=3, rank=77), ticket(7)]
    store.transact(lambda tx: tx.places.add_ready(places))
    grants = [grant(place, worker=3) for place in places]
    store.transact(lambda tx: tx.leases.grant(grants, RUNNING, 100, 10))
    store.transact(lambda tx: tx.leases.mark([6], RUNNING, "preempted"))
    told = store.transact(lambda tx: tx.placement.preemptible())
    assert told == [Preemptible(7, 3, 1, 1_007, 0), Preemptible(6, 3, 3, 77, 1)]
    stopped = store.transact(lambda tx: tx.leases.marked([1, 2, 3]))
    assert [(row.job, row.state, row.reason) for row in stopped] == [(6, RUNNING, "preempted")]
