"""`Workers`: who may run jobs."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import worker
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import WorkerId
from windlass.store.sql.transaction import WriteTx

FULL = Worker(
    id=WorkerId(0),
    name="nœud-1",
    incarnation=2,
    seq=3,
    status=4,
    last_seen=5_000,
    last_lease=6,
    slots=7,
    static='{"a":1}',
    dynamic='{"b":2}',
    troubles="[[8,9]]",
    reason="said so",
    enrolled_at=4_000,
)


def enrol(store: Driver, *rows: Worker) -> list[Worker]:
    """Inserts these workers in order and returns the row of each."""

    async def work(tx: WriteTx) -> list[Worker]:
        return [row._replace(id=WorkerId(await tx.workers.insert(row))) for row in rows]

    return store.transact(work)


def test_a_worker_is_told_with_every_column(store: Driver) -> None:
    (row,) = enrol(store, FULL)
    assert row.id == 1
    assert store.transact(lambda tx: tx.workers.lock([1])) == {1: row}
    assert store.transact(lambda tx: tx.workers.lock_name("nœud-1")) == row
    assert store.transact(lambda tx: tx.workers.all()) == [row]
    assert store.snapshot().workers == (row,)


def test_ids_rise_and_the_row_s_own_is_ignored(store: Driver) -> None:
    rows = enrol(store, worker("b", id=7), worker("a", id=7), worker("c", id=1))
    assert [row.id for row in rows] == [1, 2, 3]
    assert store.transact(lambda tx: tx.workers.all()) == rows


def test_a_name_is_enrolled_once(store: Driver) -> None:
    (row,) = enrol(store, worker("a"))
    try:
        (again,) = enrol(store, worker("a", slots=99))
    except Exception:  # Where no two enrolments can meet, a second one is the engine's fault.
        assert store.store.inline
    else:
        assert again.id == 0
    assert store.snapshot().workers == (row,)


def test_locked_workers_are_told_ascending_and_unknown_ones_left_out(store: Driver) -> None:
    rows = enrol(store, worker("a"), worker("b"), worker("c"))
    told = store.transact(lambda tx: tx.workers.lock([3, 9, 1]))
    assert list(told.items()) == [(1, rows[0]), (3, rows[2])]
    assert store.transact(lambda tx: tx.workers.lock_name("nobody")) is None


def test_an_update_writes_every_column(store: Driver) -> None:
    rows = enrol(store, worker("a"), worker("b"), worker("c"))
    changed = [
        FULL._replace(id=WorkerId(3)),
        FULL._replace(id=WorkerId(1), name="a", troubles=None, reason=None),
    ]
    store.transact(lambda tx: tx.workers.update(changed))
    assert store.snapshot().workers == (changed[1], rows[1], changed[0])
    assert store.transact(lambda tx: tx.workers.lock_name("nœud-1")) == changed[0]
    assert store.transact(lambda tx: tx.workers.lock_name("c")) is None


def test_a_beat_leaves_the_metadata_alone(store: Driver) -> None:
    rows = enrol(store, FULL, worker("b"), worker("c"))
    store.transact(lambda tx: tx.workers.beat([(3, 30, 31, 32), (9, 1, 1, 1), (1, 10, 11, 12)]))
    assert store.snapshot().workers == (
        rows[0]._replace(seq=10, last_seen=11, last_lease=12),
        rows[1],
        rows[2]._replace(seq=30, last_seen=31, last_lease=32),
    )


def test_an_update_of_an_unknown_worker_changes_nothing(store: Driver) -> None:
    rows = enrol(store, worker("a"))
    store.transact(lambda tx: tx.workers.update([worker("z", id=9)]))
    assert store.snapshot().workers == tuple(rows)


def test_a_removed_worker_is_gone_and_its_name_free(store: Driver) -> None:
    rows = enrol(store, worker("a"), worker("b"))
    store.transact(lambda tx: tx.workers.remove(1))
    store.transact(lambda tx: tx.workers.remove(9))
    assert store.transact(lambda tx: tx.workers.all()) == rows[1:]
    assert store.transact(lambda tx: tx.workers.lock_name("a")) is None
    (again,) = enrol(store, worker("a"))
    assert again.id == 3


def test_workers_with_something_against_them(store: Driver) -> None:
    rows = enrol(store, worker("a", troubles="{}"), worker("b"), worker("c", troubles="{}"))
    assert store.transact(lambda tx: tx.workers.troubled()) == [rows[0], rows[2]]


def test_silent_workers_by_time_and_status(store: Driver) -> None:
    rows = enrol(
        store,
        worker("late", last_seen=499),
        worker("just in time", last_seen=500),
        worker("later", last_seen=100, status=3),
        worker("draining", last_seen=100, status=2),
    )
    told = store.transact(lambda tx: tx.workers.silent_since(500, [3, 1]))
    assert told == [rows[0], rows[2]]
    assert store.transact(lambda tx: tx.workers.silent_since(500, [])) == []
