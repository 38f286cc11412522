"""Tailing the log: what becomes visible late is not missed, what never comes is passed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.domain.rows.events import Event, EventKind
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.transaction import WriteTx


def event(job: int) -> Event:
    return Event(0, 1, EventKind.JOB, job, 0, 0, 0, 0, 2, None, None, None)


def append(*jobs: int) -> Callable[[WriteTx], Awaitable[None]]:
    return lambda tx: tx.log.append([event(job) for job in jobs])


class Slow:
    """A transaction that has appended and waits to be told how to end."""

    def __init__(self, store: PostgresStore, *jobs: int) -> None:
        self.appended = asyncio.Event()
        self.end = asyncio.Event()
        self.fails = False
        self._jobs = jobs
        self.task = asyncio.create_task(store.transact(self._work))

    async def _work(self, tx: WriteTx) -> None:
        await tx.log.append([event(job) for job in self._jobs])
        self.appended.set()
        await self.end.wait()
        if self.fails:
            raise LookupError("changed its mind")

    async def commit(self) -> None:
        self.end.set()
        await self.task

    async def roll_back(self) -> None:
        self.fails = True
        self.end.set()
        with pytest.raises(LookupError):
            await self.task


async def read(store: PostgresStore, after: int = 0) -> list[int]:
    return [event.job for event in await store.read_settled(after, 100)]


def with_store(open_store: OpenStore, check: Callable[[PostgresStore], Awaitable[None]]) -> None:
    async def work() -> None:
        async with open_store() as store:
            await check(store)

    run(work())


def test_a_log_without_gaps_is_read_to_its_end(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> None:
        assert await read(store) == []
        await store.transact(append(1, 2))
        await store.transact(append(3))
        assert await read(store) == [1, 2, 3]
        assert await read(store, 2) == [3]

    with_store(open_store, check)


def test_an_open_transaction_holds_back_what_follows(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> None:
        await store.transact(append(1))
        slow = Slow(store, 2, 3)
        await slow.appended.wait()
        await store.transact(append(4))
        assert await read(store) == [1]
        assert await read(store) == [1]
        await slow.commit()
        assert await read(store) == [1, 2, 3, 4]

    with_store(open_store, check)


def test_a_rolled_back_transaction_leaves_a_gap_that_is_passed(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> None:
        slow = Slow(store, 1, 2)
        await slow.appended.wait()
        await store.transact(append(3))
        assert await read(store) == []
        await slow.roll_back()
        assert await read(store) == [3]
        assert [e.seq for e in await store.read_settled(0, 10)] == [3]

    with_store(open_store, check)


def test_a_gap_seen_after_its_end_is_passed_at_once(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> None:
        slow = Slow(store, 1)
        await slow.appended.wait()
        await slow.roll_back()
        await store.transact(append(2))
        assert await read(store) == [2]

    with_store(open_store, check)


def test_those_who_begin_later_do_not_hold_back_an_old_gap(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> None:
        gap = Slow(store, 1)
        await gap.appended.wait()
        await store.transact(append(2))
        assert await read(store) == []
        later = Slow(store, 3)
        await later.appended.wait()
        await gap.roll_back()
        await store.transact(append(4))
        assert await read(store) == [2]
        assert await read(store, 2) == []
        await later.commit()
        assert await read(store, 2) == [3, 4]

    with_store(open_store, check)


def test_writers_on_other_databases_hold_nobody_back(
    open_store: OpenStore, postgres_server: object
) -> None:
    async def check(store: PostgresStore) -> None:
        slow = Slow(store, 1)
        await slow.appended.wait()
        assert len(await store._event_writers()) == 1
        await slow.commit()
        assert await store._event_writers() == set()

    with_store(open_store, check)
