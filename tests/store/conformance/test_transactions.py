"""`Store`: transactions happen as a whole or not at all, at one moment."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import asyncpg
import pytest

from tests.store.conformance.driver import START_MS, Driver
from tests.store.conformance.everything import CHANGE, FILL, PENDING_TABLES, Step
from tests.store.conformance.rows import event, new_job, ticket, worker
from windlass.domain.rows.events import Event
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx

WRITES: list[Step] = [
    lambda tx: tx.workers.insert(worker("a")),
    lambda tx: tx.jobs.insert([new_job(1)]),
    lambda tx: tx.places.add_ready([ticket(1)]),
    lambda tx: tx.catalog.set_meta("epoch", 1),
    lambda tx: tx.log.append([event(1)]),
]
# A file that is open for reading, PostgreSQL, memory.
REFUSALS = (StoreUnavailable, asyncpg.ReadOnlySQLTransactionError, RuntimeError)


class ChangedMindError(Exception):
    """Raised by a transaction that is not to happen."""


def in_one(steps: Sequence[Step], then_raise: bool = False) -> Callable[[WriteTx], Awaitable[None]]:
    async def work(tx: WriteTx) -> None:
        for step in steps:
            await step(tx)
        if then_raise:
            raise ChangedMindError

    return work


def whole(store: Driver) -> tuple[Snapshot, list[Event], dict[str, int]]:
    """All that can be seen of a store, also what a snapshot leaves out."""

    async def read(tx: ReadTx) -> tuple[list[Event], dict[str, int]]:
        ready = {str(limit): await tx.places.count_ready(limit, 1) for limit in range(3)}
        ready |= {str(row): 1 for row in await tx.audit.read(0, 0, (), 1_000)}
        return await tx.log.read(0, 1_000), ready

    return store.snapshot(), *store.read(read)


def test_a_transaction_answers_what_its_work_returns(store: Driver) -> None:
    async def work(tx: ReadTx) -> str:
        return "done"

    assert store.transact(work) == "done"
    assert store.read(work) == "done"


def test_a_transaction_sees_its_own_changes(store: Driver) -> None:
    async def work(tx: WriteTx) -> list[int]:
        await tx.jobs.insert([new_job(1)])
        return list(await tx.jobs.lock([1]))

    assert store.transact(work) == [1]


def test_a_transaction_that_only_reads_refuses_every_write(store: Driver) -> None:
    empty = store.snapshot()
    for step in WRITES:
        with pytest.raises(REFUSALS):
            store.read(cast("Callable[[ReadTx], Awaitable[None]]", in_one([step])))
    assert store.snapshot() == empty


def test_every_table_is_filled_and_changed_by_the_steps_below(store: Driver) -> None:
    empty = store.snapshot()
    store.transact(in_one(FILL))
    filled = store.snapshot()
    store.transact(in_one(CHANGE))
    changed = store.snapshot()
    left_empty = [name for name in Snapshot._fields if not getattr(filled, name)]
    left_alone = [n for n in Snapshot._fields if getattr(filled, n) == getattr(changed, n)]
    assert left_empty == PENDING_TABLES
    assert left_alone == ["attempts", "shapes", *PENDING_TABLES]  # the two only ever grow
    assert not any(empty)


def test_a_transaction_that_raises_adds_nothing(store: Driver) -> None:
    before = whole(store)
    with pytest.raises(ChangedMindError):
        store.transact(in_one(FILL, then_raise=True))
    assert whole(store) == before


def test_a_transaction_that_raises_changes_and_removes_nothing(store: Driver) -> None:
    store.transact(in_one(FILL))
    before = whole(store)
    with pytest.raises(ChangedMindError):
        store.transact(in_one(CHANGE, then_raise=True))
    assert whole(store) == before


def test_the_store_goes_on_as_if_a_failed_transaction_had_not_been(store: Driver) -> None:
    store.transact(in_one(FILL[:-1]))
    with pytest.raises(ChangedMindError):
        store.transact(in_one(CHANGE, then_raise=True))
    store.transact(in_one(CHANGE[:-1]))
    after_failure = store.snapshot()
    assert [row.id for row in after_failure.workers] == [1]
    assert [row.job for row in after_failure.parked] == [3]
    assert after_failure.jobs[3].facts.superseded_by == 6


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
def test_any_kind_of_error_takes_everything_back(store: Driver, error: type[BaseException]) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.places.add_ready([ticket(1)])
        raise error

    async def attempt() -> str:
        try:
            await store.store.transact(work)
        except error:
            return "raised"
        return "swallowed"

    assert store.run(attempt()) == "raised"
    assert store.snapshot().ready == ()


def test_what_is_committed_survives_a_new_engine(store: Driver) -> None:
    store.transact(in_one(FILL))
    before = whole(store)
    store.reopen("s2")
    assert whole(store) == before


def test_a_read_sees_what_was_committed_and_leaves_nothing(store: Driver) -> None:
    store.transact(in_one(FILL))
    before = whole(store)

    async def look(tx: ReadTx) -> int:
        return len(await tx.log.read(0, 10))

    assert store.read(look) == 2
    try:
        store.read(cast(Callable[[ReadTx], Awaitable[None]], in_one(CHANGE)))
    except Exception:  # A store may refuse to write during a read, or forget what was written.
        pass
    assert whole(store) == before


def test_an_error_in_a_read_reaches_the_caller(store: Driver) -> None:
    async def change_mind(tx: ReadTx) -> None:
        raise ChangedMindError

    with pytest.raises(ChangedMindError):
        store.read(change_mind)
    store.transact(lambda tx: tx.log.append([event(1)]))


def test_time_is_the_clock_s_and_the_same_throughout(store: Driver) -> None:
    async def work(tx: WriteTx) -> list[int]:
        first = tx.now
        await tx.jobs.insert([new_job(1)])
        return [first, tx.now]

    assert store.transact(work) == [START_MS, START_MS]
    store.set_clock(START_MS + 5_000)
    assert store.now() == START_MS + 5_000


def test_time_never_runs_backwards(store: Driver) -> None:
    store.set_clock(START_MS + 5_000)
    assert store.now() == START_MS + 5_000
    store.set_clock(START_MS + 1_000)
    assert store.now() == START_MS + 5_000
    store.set_clock(START_MS + 6_000)
    assert store.now() == START_MS + 6_000


def test_an_inline_store_refuses_a_transaction_that_waits(store: Driver) -> None:
    if not store.store.inline:
        assert store.kind == "postgres"
        return

    async def work(tx: WriteTx) -> None:
        await tx.places.add_ready([ticket(1)])
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="a store transaction tried to wait"):
        store.transact(work)
    assert store.snapshot().ready == ()


def test_transactions_of_one_engine_may_be_started_together(store: Driver) -> None:
    async def together() -> None:
        works = [lambda tx: tx.log.bump({"n": 1}) for _ in range(20)]
        await asyncio.gather(*(store.store.transact(work) for work in works))

    store.run(together())
    assert store.snapshot().counters == (("n", 20),)
