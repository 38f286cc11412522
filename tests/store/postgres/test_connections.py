"""The pool keeps its limits: open, idle, lifetime, and the turn of those who wait."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.domain.config import describe_options
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.postgres.connections import Link, Pool, PoolLimits
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.transaction import WriteTx


def with_pool(dsn: str, check: Callable[[Pool], Awaitable[None]], limits: PoolLimits) -> None:
    async def work() -> None:
        pool = Pool(dsn, limits)
        try:
            await check(pool)
        finally:
            await pool.close()

    run(work())


def closed(link: Link) -> asyncio.Event:
    """Set when the connection is closed."""
    event = asyncio.Event()
    link.connection.add_termination_listener(lambda _: event.set())
    return event


def test_no_more_than_the_limit_are_open_and_the_rest_wait(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        one, two = await pool.acquire(), await pool.acquire()
        third = asyncio.create_task(pool.acquire())
        fourth = asyncio.create_task(pool.acquire())
        while pool.counts.waits < 2:
            await asyncio.wait({third}, timeout=0)
        assert pool.counts == (2, 0, 2, 2)
        pool.release(one)
        assert await third is one
        pool.discard(two)
        assert (await fourth).connection is not two.connection
        assert pool.counts == (2, 0, 2, 2)
        pool.release(await fourth)
        pool.release(one)
        assert pool.counts == (2, 2, 0, 2)

    with_pool(postgres_dsn, check, PoolLimits(open=2))


def test_no_more_than_the_limit_stay_idle(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        links = [await pool.acquire() for _ in range(3)]
        ends = [closed(link) for link in links]
        for link in links:
            pool.release(link)
        assert pool.counts == (1, 1, 0, 0)
        await asyncio.gather(ends[0].wait(), ends[1].wait())
        assert not links[2].connection.is_closed()

    with_pool(postgres_dsn, check, PoolLimits(idle=1))


def test_an_old_connection_is_not_kept(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        link = await pool.acquire()
        end = closed(link)
        pool.release(link)
        assert pool.counts == (0, 0, 0, 0)
        await end.wait()

    with_pool(postgres_dsn, check, PoolLimits(lifetime_ms=0))


def test_an_idle_connection_is_closed_in_time(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        link = await pool.acquire()
        end = closed(link)
        pool.release(link)
        assert pool.counts.idle == 1
        await end.wait()
        assert pool.counts == (0, 0, 0, 0)

    with_pool(postgres_dsn, check, PoolLimits(idle_ms=1))


def test_the_most_recently_used_is_lent_first(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        one, two = await pool.acquire(), await pool.acquire()
        pool.release(one)
        pool.release(two)
        assert await pool.acquire() is two
        pool.release(two)

    with_pool(postgres_dsn, check, PoolLimits())


def test_who_gives_up_waiting_takes_no_connection_along(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        link = await pool.acquire()
        impatient = asyncio.create_task(pool.acquire())
        patient = asyncio.create_task(pool.acquire())
        while pool.counts.waits < 2:
            await asyncio.wait({impatient}, timeout=0)
        pool.release(link)  # Handed to the impatient one, which never gets to run.
        impatient.cancel()
        assert await patient is link
        with pytest.raises(asyncio.CancelledError):
            await impatient
        pool.release(link)
        assert pool.counts == (1, 1, 0, 2)

    with_pool(postgres_dsn, check, PoolLimits(open=1))


def test_slots_of_open_connections_differ(postgres_dsn: str) -> None:
    async def check(pool: Pool) -> None:
        links = [await pool.acquire() for _ in range(3)]
        assert len({link.slot for link in links}) == 3
        pool.discard(links[1])
        links[1] = await pool.acquire()
        assert len({link.slot for link in links}) == 3
        for link in links:
            pool.release(link)

    with_pool(postgres_dsn, check, PoolLimits(open=3))


def test_transactions_of_one_store_take_turns(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store(pool_open=2, pool_idle=1) as store:

            async def work(tx: WriteTx) -> int:
                (job,) = await tx.jobs.allocate(1)
                return job

            jobs = await asyncio.gather(*(store.transact(work) for _ in range(20)))
            assert sorted(jobs) == list(range(1, 21))
            assert (store.pool.open, store.pool.idle, store.pool.in_use) == (1, 1, 0)
            assert store.pool.waits >= 18

    run(check())


def test_a_server_that_is_not_there_is_unavailable() -> None:
    async def check() -> None:
        with pytest.raises(StoreUnavailable) as refused:
            await PostgresStore.connect("postgresql://nobody@127.0.0.1:1/none")
        assert not refused.value.outcome_unknown

    run(check())


def test_a_store_opens_one_connection_more_than_work_at_once(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    """The one that listens for notifications, as the option says."""
    options = {option.name: option for option in describe_options()}
    assert "one more listens for notifications" in options["pool_open"].description

    async def work() -> None:
        async with open_store(pool_open=3, pool_idle=3) as store:
            go_on = asyncio.Event()
            begun: list[int] = []

            async def hold(tx: WriteTx) -> None:
                begun.append(tx.now)
                await go_on.wait()

            holding = [asyncio.create_task(store.transact(hold)) for _ in range(5)]
            while len(begun) < 3:
                await asyncio.wait(holding, timeout=0.01)
            assert await _connections(postgres_dsn) == 3 + 1
            go_on.set()
            await asyncio.gather(*holding)

    run(work())


async def _connections(dsn: str) -> int:
    """How many there are besides the one that asks."""
    connection = await asyncpg.connect(dsn)
    try:
        return int(
            await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
        )
    finally:
        await connection.close()
