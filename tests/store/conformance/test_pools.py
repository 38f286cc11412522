"""`Pools`: names that are taken once, workers until they are gone, sums, and the load."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.pool_rows import cost, pool, pool_worker
from tests.store.conformance.rows import (
    ASSIGNED,
    COMPLETED,
    QUEUED,
    RETRYING,
    RUNNING,
    attempt,
    event,
    grant,
    job_end,
    new_job,
    ticket,
    worker,
)
from windlass.domain.pools.pools import Lifecycle
from windlass.store.sql.pools import HeldJob, Load, Span, Spell
from windlass.store.sql.transaction import WriteTx


def test_a_name_belongs_to_one_pool(store: Driver) -> None:
    assert store.transact(lambda tx: tx.pools.insert(pool("b", message=None))) == 1
    assert store.transact(lambda tx: tx.pools.insert(pool("b"))) == 0
    assert store.transact(lambda tx: tx.pools.insert(pool("a", learned=None))) == 2
    first = pool("b", id=1, message=None)
    assert store.transact(lambda tx: tx.pools.lock(1)) == first
    assert store.transact(lambda tx: tx.pools.lock_name("b")) == first
    assert store.transact(lambda tx: tx.pools.lock(3)) is None
    assert store.transact(lambda tx: tx.pools.lock_name("c")) is None
    assert store.read(lambda tx: tx.pools.all()) == [pool("a", id=2, learned=None), first]


def test_an_update_keeps_where_a_pool_came_from(store: Driver) -> None:
    store.transact(lambda tx: tx.pools.insert(pool("b")))
    changed = pool(
        "other", id=1, state=2, failures=1, next_at=2, started_at=3, message="m", learned="l",
        body=b"b", created_at=4, created_by="eve", updated_at=5,
    )  # fmt: skip
    store.transact(lambda tx: tx.pools.update(changed))
    kept = changed._replace(name="b", created_at=844, created_by="ada")
    assert store.read(lambda tx: tx.pools.all()) == [kept]


def test_a_removed_pool_takes_its_workers_along_and_leaves_its_costs(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        for name in ("a", "b"):
            await tx.pools.insert(pool(name))
        await tx.pools.add_workers([pool_worker(1, "x"), pool_worker(2, "y")])
        await tx.pools.charge([cost("a")])

    store.transact(fill)
    store.transact(lambda tx: tx.pools.remove(1))
    assert [row.name for row in store.read(lambda tx: tx.pools.all())] == ["b"]
    assert [row.token for row in store.read(lambda tx: tx.pools.living())] == ["y"]
    assert store.read(lambda tx: tx.pools.costs(202611)) == [cost("a")]


def test_workers_live_until_they_are_gone(store: Driver) -> None:
    rows = [pool_worker(1, "x"), pool_worker(1, "y", machine=None)]
    added = store.transact(lambda tx: tx.pools.add_workers(rows))
    assert added == [row._replace(id=n) for n, row in enumerate(rows, 1)]
    gone = pool_worker(
        9, "other", id=1, state=int(Lifecycle.GONE), worker=1, last_lease=2, requested_at=3,
        changed_at=4, idle_since=5, charged_until=6, tries=7, spot=0, machine="m", reason="r",
    )  # fmt: skip
    store.transact(lambda tx: tx.pools.update_workers([gone]))
    assert store.read(lambda tx: tx.pools.living()) == [added[1]]
    assert store.read(lambda tx: tx.pools.worker(2)) == added[1]
    assert store.read(lambda tx: tx.pools.worker(3)) is None
    kept = gone._replace(pool=1, requested_at=853, spot=1, token="x")
    assert store.snapshot().pool_workers == (kept, added[1])


def test_the_oldest_that_are_gone_are_forgotten_first(store: Driver) -> None:
    gone = [pool_worker(1, f"t{n}", state=6, changed_at=n) for n in (3, 1, 2)]
    living = pool_worker(1, "living", state=5, changed_at=0)
    store.transact(lambda tx: tx.pools.add_workers([*gone, living]))
    assert store.transact(lambda tx: tx.pools.trim_gone(3, 1)) == 1
    assert {row.token for row in store.snapshot().pool_workers} == {"t3", "t2", "living"}
    assert store.transact(lambda tx: tx.pools.trim_gone(3, 9)) == 1
    assert store.transact(lambda tx: tx.pools.trim_gone(3, 9)) == 0
    assert {row.token for row in store.snapshot().pool_workers} == {"t3", "living"}


def test_costs_add_up_by_pool_month_namespace_and_queue(store: Driver) -> None:
    rows = [cost("p", ms=1, micros=10), cost("p", queue="live"), cost("p", month=202612)]
    store.transact(lambda tx: tx.pools.charge(rows))
    store.transact(lambda tx: tx.pools.charge([cost("p", ms=2, micros=20), cost("a")]))
    assert store.read(lambda tx: tx.pools.costs(202611)) == [
        cost("a"),
        cost("p", ms=3, micros=30),
        cost("p", queue="live"),
    ]
    assert store.read(lambda tx: tx.pools.costs(202601)) == []


def test_the_load_counts_what_is_ready_and_tells_what_is_leased(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        await tx.workers.insert(worker("a"))
        await tx.jobs.allocate(6)
        await tx.jobs.insert([new_job(n, shape=7 if n == 6 else 3) for n in range(1, 7)])
        await tx.places.add_ready([ticket(n, shape=7 if n == 6 else 3) for n in range(1, 7)])
        await tx.leases.grant([grant(ticket(1, shape=3), worker=1)], RUNNING, 100, 10)
        await tx.leases.grant([grant(ticket(2, shape=3), worker=1)], 3, 90, 10)

    assert store.read(lambda tx: tx.pools.load(10)) == Load([], [])
    store.transact(fill)
    leases = [HeldJob(1, 3, 90, 2), HeldJob(1, 3, 100, 1)]
    assert store.read(lambda tx: tx.pools.load(10)) == Load([(3, 3), (7, 1)], leases)
    assert store.read(lambda tx: tx.pools.load(2)) == Load([(3, 2), (7, 1)], leases)


def test_spells_are_told_of_attempts_that_have_ended(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job, shape=10 + job) for job in (1, 2, 3)])
        begun = attempt(1, 1, assigned_at=100, started_at=110)
        await tx.jobs.record_attempts([begun, attempt(2, 1, assigned_at=200, started_at=None)])
        await tx.jobs.end([job_end(1, state=COMPLETED, attempt=2, started_at=300)])
        await tx.log.append([
            event(1, source=QUEUED, to=ASSIGNED, attempt=1, worker=5, at=100),  # no end
            event(1, source=ASSIGNED, to=RUNNING, attempt=1, worker=5, at=110),  # nor this
            event(1, source=RUNNING, to=RETRYING, attempt=1, worker=5, at=150),
            event(2, source=ASSIGNED, to=QUEUED, attempt=1, worker=6, at=250),
            event(1, source=RUNNING, to=COMPLETED, attempt=2, worker=5, at=390),
            event(3, source=RUNNING, to=RETRYING, attempt=1, worker=5, at=400),  # of no known start
            event(9, source=RUNNING, to=COMPLETED, attempt=1, worker=5, at=410),  # of no known job
        ])  # fmt: skip

    store.transact(fill)
    first, given, second = Spell(5, 11, 110, 150), Spell(6, 12, 200, 250), Spell(5, 11, 300, 390)
    assert store.read(lambda tx: tx.pools.spells(0, [5, 6, 7])) == [first, second, given]
    assert store.read(lambda tx: tx.pools.spells(0, [6])) == [given]
    assert store.read(lambda tx: tx.pools.spells(3, [6, 5])) == [second, given]
    assert store.read(lambda tx: tx.pools.spells(7, [5, 6])) == []


def test_ready_jobs_are_counted_span_by_span(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        await tx.jobs.allocate(6)
        ranks = [5, 3, 3, 4, -1, 0]
        shapes = [3, 3, 3, 3, 3, 7]
        rows = list(zip(range(1, 7), shapes, ranks, strict=True))
        await tx.jobs.insert([new_job(n, shape=shape, rank=rank) for n, shape, rank in rows])
        await tx.places.add_ready([ticket(n, shape=shape, rank=rank) for n, shape, rank in rows])

    store.transact(fill)
    lowest = -(2**63)
    assert store.read(lambda tx: tx.pools.span(3, lowest, 0, 2)) == Span(2, 3, 2)
    assert store.read(lambda tx: tx.pools.span(3, 3, 2, 2)) == Span(2, 4, 4)
    assert store.read(lambda tx: tx.pools.span(3, 4, 4, 2)) == Span(1, 0, 0)
    assert store.read(lambda tx: tx.pools.span(3, 5, 1, 2)) == Span(0, 0, 0)
    assert store.read(lambda tx: tx.pools.span(8, lowest, 0, 2)) == Span(0, 0, 0)
