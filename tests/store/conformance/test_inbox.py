"""What users submitted in transactions of their own, and the jobs that stand for others."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import inbox_row
from windlass.domain.rows.records import InboxRow, JobAlias
from windlass.store.sql.transaction import WriteTx


async def fill(tx: WriteTx) -> None:
    await tx.inbox.put([inbox_row(3), inbox_row(4, 5, namespaces=("a", "ä"))])
    await tx.inbox.put([inbox_row(6, body='{"ä": 1}'.encode())])
    await tx.inbox.put([])


def waiting(store: Driver, after: int, count: int) -> list[InboxRow]:
    return store.read(lambda tx: tx.inbox.waiting(after, count))


def test_rows_come_in_the_order_of_submission(store: Driver) -> None:
    store.transact(fill)
    assert waiting(store, 0, 9) == [
        inbox_row(3, id=1),
        inbox_row(4, 5, id=2, namespaces=("a", "ä")),
        inbox_row(6, id=3, body='{"ä": 1}'.encode()),
    ]
    assert [row.id for row in waiting(store, 1, 1)] == [2]


def test_a_row_is_taken_once(store: Driver) -> None:
    store.transact(fill)
    assert store.transact(lambda tx: tx.inbox.take([2, 1, 77])) == [1, 2]
    assert store.transact(lambda tx: tx.inbox.take([1, 2, 3])) == [3]
    assert store.transact(lambda tx: tx.inbox.take([])) == []
    assert waiting(store, 0, 9) == []


def test_an_alias_names_the_job_until_it_is_trimmed(store: Driver) -> None:
    rows = [JobAlias(7, 1, 5), JobAlias(8, 2, 6), JobAlias(9, 3, 7)]
    store.transact(lambda tx: tx.inbox.add_aliases(rows))
    store.transact(lambda tx: tx.inbox.add_aliases([]))
    assert store.read(lambda tx: tx.inbox.alias(8)) == 2
    assert store.read(lambda tx: tx.inbox.alias(1)) is None
    assert store.transact(lambda tx: tx.inbox.trim_aliases(7, 1)) == 1
    assert store.transact(lambda tx: tx.inbox.trim_aliases(7, 9)) == 1
    assert store.read(lambda tx: tx.inbox.alias(9)) == 3
