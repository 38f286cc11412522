"""Ids and numbers: each sequence begins at 1, rises by 1 and never gives one twice."""

import pytest

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import new_job
from windlass.store.sql.transaction import WriteTx


@pytest.mark.parametrize("role", ["jobs", "workflows"])
def test_ids_rise_by_one_from_one(store: Driver, role: str) -> None:
    def allocate(count: int) -> list[int]:
        return list(store.transact(lambda tx: getattr(tx, role).allocate(count)))

    assert allocate(3) == [1, 2, 3]
    assert allocate(1) == [4]
    assert allocate(1_500) == list(range(5, 1_505))
    assert allocate(1) == [1_505]


def test_the_sequences_do_not_share_numbers(store: Driver) -> None:
    async def work(tx: WriteTx) -> list[list[int]]:
        return [list(await tx.jobs.allocate(2)), list(await tx.workflows.allocate(2))]

    assert store.transact(work) == [[1, 2], [1, 2]]


def test_ids_given_in_one_transaction_differ(store: Driver) -> None:
    async def work(tx: WriteTx) -> list[int]:
        return [*await tx.jobs.allocate(2), *await tx.jobs.allocate(2)]

    assert store.transact(work) == [1, 2, 3, 4]


def test_ids_in_use_are_not_given_again_after_a_failure(store: Driver) -> None:
    async def submit(tx: WriteTx) -> int:
        (job,) = await tx.jobs.allocate(1)
        await tx.jobs.insert([new_job(job)])
        return job

    async def fail(tx: WriteTx) -> None:
        await submit(tx)
        raise LookupError("changed its mind")

    first = store.transact(submit)
    with pytest.raises(LookupError):
        store.transact(fail)
    second = store.transact(submit)
    assert first < second
    assert [row.facts.id for row in store.snapshot().jobs] == [first, second]


def test_a_new_engine_goes_on_with_the_numbers(store: Driver) -> None:
    assert list(store.transact(lambda tx: tx.jobs.allocate(3))) == [1, 2, 3]
    store.reopen("s2")
    assert list(store.transact(lambda tx: tx.jobs.allocate(2))) == [4, 5]
