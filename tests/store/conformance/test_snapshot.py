"""`Store.snapshot`: everything there is, in one order whatever the order of writing was."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import (
    RUNNING,
    attempt,
    cascade,
    due,
    grant,
    new_job,
    ticket,
    wait,
    worker,
    workflow,
)
from windlass.domain.rows.records import KeyRow, QueueRow
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import WriteTx

NAMES = ["b", "B", "a", "ä", "z", "Z-1", "_", "10", "9"]
SCATTERED = [7, 2, 9, 4, 1]


def test_an_empty_store_shows_nothing(store: Driver) -> None:
    assert store.snapshot() == Snapshot(*((),) * len(Snapshot._fields))


def test_rows_ascend_by_their_ids(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job) for job in SCATTERED])
        await tx.jobs.record_attempts([attempt(job, n) for job in SCATTERED for n in (2, 1)])
        await tx.jobs.add_dependents({job: [5, 3] for job in SCATTERED})
        await tx.places.add_waits([wait(job) for job in SCATTERED])
        await tx.workflows.insert([workflow(number) for number in SCATTERED])
        await tx.workflows.add_cascades([cascade(job) for job in SCATTERED])

    store.transact(work)
    shown = store.snapshot()
    assert [row.facts.id for row in shown.jobs] == sorted(SCATTERED)
    assert [row.job for row in shown.waits] == sorted(SCATTERED)
    assert [row.id for row in shown.workflows] == sorted(SCATTERED)
    assert [row.job for row in shown.cascades] == SCATTERED
    assert shown.dependents == tuple((job, (5, 3)) for job in sorted(SCATTERED))
    numbered = [(row.job, row.number) for row in shown.attempts]
    assert numbered == [(job, n) for job in sorted(SCATTERED) for n in (1, 2)]


def test_places_show_the_order_in_which_they_are_served(store: Driver) -> None:
    places = [
        ticket(job, shape=shape, rank=rank, limit=limit)
        for job, (shape, rank, limit) in enumerate(
            [(2, -5, 1), (1, 9, 2), (1, 9, 1), (1, -9, 1), (2, -6, 1), (1, 9, 1)], start=1
        )
    ]

    async def work(tx: WriteTx) -> None:
        await tx.places.add_ready(places[::-1])
        await tx.places.add_parked(places[::-1])
        await tx.places.add_due([due(3, at=7), due(1, at=9), due(2, at=7), due(5, at=10)])

    store.transact(work)
    shown = store.snapshot()
    assert [row.job for row in shown.ready] == [4, 2, 3, 6, 5, 1]
    assert [row.job for row in shown.parked] == [4, 3, 6, 5, 1, 2]
    assert [(row.at, row.job) for row in shown.due] == [(7, 2), (7, 3), (9, 1), (10, 5)]


def test_leases_ascend_by_job_and_workers_by_id(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        for name in NAMES:
            await tx.workers.insert(worker(name))
        await tx.jobs.insert([new_job(job) for job in SCATTERED])
        await tx.places.add_ready([ticket(job) for job in SCATTERED])
        grants = [grant(ticket(job), worker=job) for job in SCATTERED]
        await tx.leases.grant(grants, RUNNING, 1_000, 10)

    store.transact(work)
    shown = store.snapshot()
    assert [row.job for row in shown.leases] == sorted(SCATTERED)
    assert [row.name for row in shown.workers] == NAMES


def test_names_ascend_as_text_without_regard_to_language(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        for name in NAMES:
            await tx.catalog.put_queue(QueueRow(name, 1, 0))
            await tx.catalog.set_meta(name, 7)
        await tx.jobs.claim_keys([KeyRow(ns, key, 1, "d") for ns in NAMES for key in NAMES])
        await tx.log.bump(dict.fromkeys(NAMES, 1))

    store.transact(work)
    shown = store.snapshot()
    assert [row.name for row in shown.queues] == sorted(NAMES)
    assert shown.meta == tuple((name, 7) for name in sorted(NAMES))
    assert shown.counters == tuple((name, 1) for name in sorted(NAMES))
    named = [(row.namespace, row.key) for row in shown.keys]
    assert named == [(ns, key) for ns in sorted(NAMES) for key in sorted(NAMES)]


def test_interned_rows_ascend_by_id(store: Driver) -> None:
    store.transact(lambda tx: tx.catalog.intern_shapes({"bb": b"{}"}))
    store.transact(lambda tx: tx.catalog.intern_shapes({"aa": b"{}"}))
    store.transact(lambda tx: tx.limits.intern([("team", "b", 1)]))
    store.transact(lambda tx: tx.limits.intern([("team", "a", 1)]))
    assert [row.digest for row in store.snapshot().shapes] == ["bb", "aa"]
    assert [row.key for row in store.snapshot().limits] == ["b", "a"]
