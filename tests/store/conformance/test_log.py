"""`Log`: events in one order with numbers of their own, and counters in shards."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import QUEUED, RETRYING, RUNNING, event
from windlass.domain.rows.events import Event, EventKind
from windlass.store.sql.transaction import WriteTx

FULL = Event(
    seq=0,
    at=1_000,
    kind=EventKind.JOB,
    job=2,
    attempt=3,
    worker=4,
    incarnation=5,
    source=RUNNING,
    to=RETRYING,
    reason="“lost”",
    actor="ops",
    data='{"backoff_ms":5000}',
)


def read(store: Driver, after: int = 0, count: int = 1_000) -> list[Event]:
    return store.transact(lambda tx: tx.log.read(after, count))


def test_an_event_is_told_with_every_column(store: Driver) -> None:
    worker = Event(0, 1, EventKind.WORKER, 0, 0, 7, 8, 0, 0, "enrolled", None, None)
    store.transact(lambda tx: tx.log.append([FULL, worker]))
    assert read(store) == [FULL._replace(seq=1), worker._replace(seq=2)]


def test_events_are_numbered_in_the_order_they_were_appended(store: Driver) -> None:
    jobs = [5, 3, 9, 3, 1]

    async def append(tx: WriteTx) -> None:
        await tx.log.append([event(job) for job in jobs[:2]])
        await tx.log.append([event(job) for job in jobs[2:]])

    store.transact(append)
    store.transact(lambda tx: tx.log.append([event(2)]))
    told = [(row.seq, row.job) for row in read(store)]
    assert told == list(enumerate([*jobs, 2], start=1))


def test_the_log_may_hold_the_same_thing_twice(store: Driver) -> None:
    store.transact(lambda tx: tx.log.append([FULL, FULL]))
    assert read(store) == [FULL._replace(seq=1), FULL._replace(seq=2)]


def test_reading_begins_after_a_number_and_ends_after_a_count(store: Driver) -> None:
    store.transact(lambda tx: tx.log.append([event(job) for job in range(1, 1_502)]))
    assert [row.seq for row in read(store, after=1_498)] == [1_499, 1_500, 1_501]
    assert [row.seq for row in read(store, after=3, count=2)] == [4, 5]
    assert [row.job for row in read(store, count=2_000)] == list(range(1, 1_502))
    assert read(store, after=1_501) == []
    assert read(store, count=0) == []


def test_the_newest_number_is_where_the_log_ends(store: Driver) -> None:
    assert store.read(lambda tx: tx.log.newest()) == 0
    store.transact(lambda tx: tx.log.append([event(5), event(3)]))
    assert store.read(lambda tx: tx.log.newest()) == 2


def test_the_events_of_one_job_in_order(store: Driver) -> None:
    rows = [
        event(2),
        event(1),
        event(2, source=QUEUED, to=3),
        event(3),
        event(2, source=3, to=RUNNING),
    ]
    store.transact(lambda tx: tx.log.append(rows))
    told = store.transact(lambda tx: tx.log.of_job(2))
    assert [(row.seq, row.to) for row in told] == [(1, QUEUED), (3, 3), (5, RUNNING)]
    assert store.transact(lambda tx: tx.log.of_job(9)) == []


def test_counters_add_up(store: Driver) -> None:
    store.transact(lambda tx: tx.log.bump({"retries": 2, "timeouts": 1}))
    store.transact(lambda tx: tx.log.bump({"retries": 3, "depth:live": -1}))
    expected = {"retries": 5, "timeouts": 1, "depth:live": -1}
    assert store.transact(lambda tx: tx.log.counters()) == expected
    assert store.snapshot().counters == tuple(sorted(expected.items()))


def test_counters_are_summed_over_the_engines(store: Driver) -> None:
    store.transact(lambda tx: tx.log.bump({"retries": 2, "depth": -4}))
    store.reopen("s2")
    store.transact(lambda tx: tx.log.bump({"retries": 5, "orphans": 1}))
    store.reopen("s1")
    store.transact(lambda tx: tx.log.bump({"depth": 7}))
    expected = {"retries": 7, "depth": 3, "orphans": 1}
    assert store.transact(lambda tx: tx.log.counters()) == expected
    assert store.snapshot().counters == (("depth", 3), ("orphans", 1), ("retries", 7))


def test_counters_that_are_folded_stay_the_same(store: Driver) -> None:
    many = {f"depth:{number}": 1 for number in range(600)}
    store.transact(lambda tx: tx.log.bump({**many, "retries": 2}))
    store.transact(lambda tx: tx.log.bump({**dict.fromkeys(many, -1), "retries": 1}))
    for _ in range(2):
        store.transact(lambda tx: tx.log.fold())
        assert store.snapshot().counters == (("retries", 3),)


def test_a_snapshot_leaves_out_counters_that_came_back_to_zero(store: Driver) -> None:
    store.transact(lambda tx: tx.log.bump({"depth": 4, "retries": 1}))
    store.reopen("s2")
    store.transact(lambda tx: tx.log.bump({"depth": -4}))
    assert store.snapshot().counters == (("retries", 1),)
    assert store.transact(lambda tx: tx.log.counters()).get("depth", 0) == 0
