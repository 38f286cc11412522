"""`Jobs`: who waits for a job, packed in chunks of 1,000."""

from tests.store.conformance.driver import Driver
from windlass.store.sql.transaction import WriteTx


def chunks(store: Driver, job: int) -> list[tuple[int, ...]]:
    """All chunks of a job's list, read from number 0 up to the first that is missing."""

    async def walk(tx: WriteTx) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        while (edges := (await tx.jobs.dependents([job], len(found))).get(job)) is not None:
            found.append(edges)
        return found

    return store.transact(walk)


def test_edges_keep_the_order_in_which_they_were_added(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.add_dependents({1: [9, 4, 2**54 + 1], 2: [7]}))
    store.transact(lambda tx: tx.jobs.add_dependents({1: [3]}))
    told = store.transact(lambda tx: tx.jobs.dependents([1, 2, 3], 0))
    assert told == {1: (9, 4, 2**54 + 1, 3), 2: (7,)}


def test_a_thousand_fill_one_chunk(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.add_dependents({1: range(1_000)}))
    assert chunks(store, 1) == [tuple(range(1_000))]


def test_one_more_begins_another_chunk(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.add_dependents({1: range(1_001)}))
    assert chunks(store, 1) == [tuple(range(1_000)), (1_000,)]


def test_a_long_list_has_many_chunks(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.add_dependents({1: range(3_500), 2: [1]}))
    assert [len(chunk) for chunk in chunks(store, 1)] == [1_000, 1_000, 1_000, 500]
    assert store.transact(lambda tx: tx.jobs.dependents([1, 2], 3)) == {
        1: tuple(range(3_000, 3_500))
    }
    assert store.snapshot().dependents == ((1, tuple(range(3_500))), (2, (1,)))


def test_later_edges_fill_the_last_chunk_first(store: Driver) -> None:
    def add(first: int, last: int) -> None:
        store.transact(lambda tx: tx.jobs.add_dependents({1: range(first, last)}))

    for first, last in ((0, 600), (600, 1_200), (1_200, 1_201), (1_201, 4_000)):
        add(first, last)
    assert chunks(store, 1) == [tuple(range(n, n + 1_000)) for n in (0, 1_000, 2_000, 3_000)]


def test_a_chunk_that_is_not_there_is_left_out(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.add_dependents({1: [2]}))
    assert store.transact(lambda tx: tx.jobs.dependents([1], 1)) == {}
    assert store.transact(lambda tx: tx.jobs.dependents([8], 0)) == {}


def test_a_job_with_no_edges_gets_no_list(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.add_dependents({1: []}))
    assert store.transact(lambda tx: tx.jobs.dependents([1], 0)) == {}
    assert store.snapshot().dependents == ()
