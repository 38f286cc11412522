"""`Audit`: who did what."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import audit_row
from windlass.store.sql.transaction import WriteTx


def fill(store: Driver) -> None:
    async def append(tx: WriteTx) -> None:
        await tx.audit.append([audit_row(30, namespace="a"), audit_row(10, namespace="")])
        await tx.audit.append([audit_row(20, namespace="ä", calls=2**40)])
        await tx.audit.append([])

    store.transact(append)


def ids(
    store: Driver, after: int = 0, since: int = 0, names: tuple[str, ...] = (), count: int = 9
) -> list[int]:
    rows = store.read(lambda tx: tx.audit.read(after, since, names, count))
    return [row.id for row in rows]


def test_recent_rows_come_newest_first_below_an_id(store: Driver) -> None:
    fill(store)

    def recent(before: int, count: int) -> list[int]:
        return [row.id for row in store.read(lambda tx: tx.audit.recent(before, count))]

    assert recent(0, 9) == [3, 2, 1]
    assert (recent(3, 1), recent(1, 9), recent(0, 2)) == ([2], [], [3, 2])


def test_rows_come_back_as_they_were_written_in_their_order(store: Driver) -> None:
    fill(store)
    rows = store.read(lambda tx: tx.audit.read(0, 0, (), 9))
    assert rows == [
        audit_row(30, id=1, namespace="a"),
        audit_row(10, id=2, namespace=""),
        audit_row(20, id=3, namespace="ä", calls=2**40),
    ]


def test_a_reader_asks_for_rows_after_one_since_a_time_and_of_namespaces(store: Driver) -> None:
    fill(store)
    assert ids(store, count=2) == [1, 2]
    assert ids(store, after=1) == [2, 3]
    assert ids(store, since=20) == [1, 3]
    assert ids(store, since=31) == []
    assert ids(store, names=("ä", "b")) == [3]
    assert ids(store, names=("a", "ä"), after=1) == [3]


def test_the_oldest_rows_are_removed_first_and_ids_are_not_used_again(store: Driver) -> None:
    fill(store)
    assert store.transact(lambda tx: tx.audit.trim(30, 1)) == 1
    assert ids(store) == [1, 3]
    assert store.transact(lambda tx: tx.audit.trim(31, 9)) == 2
    assert store.transact(lambda tx: tx.audit.trim(31, 9)) == 0
    fill(store)
    assert ids(store) == [4, 5, 6]
