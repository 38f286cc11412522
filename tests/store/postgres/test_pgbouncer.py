"""PgBouncer in transaction mode: found out by itself, and nothing is lost but some speed."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.proxy import Fault, proxy_to
from tests.support.pgbouncer import PgBouncer, start_pgbouncer
from tests.support.postgres import PostgresServer
from tests.support.running import run
from tests.support.running_server import running_server
from tests.support.waiting import until
from windlass.assembly.stores import upgrade_store
from windlass.domain.config import Config
from windlass.domain.rows.records import QueueRow
from windlass.domain.values.errors import StoreUnavailable
from windlass.messages.sync import Finished
from windlass.store.postgres.connections import addresses, is_pooled, open_connection
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import News

PATIENCE_S = 60
LONGEST_WAIT_MS = 30_000
# Loops do not stand in for what the test waits for.
QUIET = Config(scheduling_interval_ms=600_000, cleanup_interval_ms=600_000)


@pytest.fixture
def pooled(pgbouncer: PgBouncer, postgres_dsn: str) -> str:
    """The address of an empty database through the pooler, with no way past it."""
    return pgbouncer.dsn(postgres_dsn)


def test_a_direct_connection_keeps_its_statements_and_a_pooled_one_none(
    postgres_dsn: str, pooled: str
) -> None:
    async def check() -> None:
        for dsn, expected in ((postgres_dsn, False), (pooled, True)):
            connection = await open_connection(dsn)
            assert is_pooled(connection) is expected
            assert await connection.fetchval("SELECT current_setting('search_path')") == "windlass"
            assert await connection.fetchval("SHOW plan_cache_mode") == "force_generic_plan"
            found = await connection.fetchval("SELECT count(*) FROM pg_prepared_statements")
            assert (found == 0) is expected
            await connection.close()

    run(check())


@pytest.fixture
def ignoring(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[PgBouncer]:
    """A pooler in session mode that drops our settings without a word."""
    names = "search_path,jit,plan_cache_mode,enable_bitmapscan,enable_hashjoin,enable_mergejoin,"
    names += "enable_seqscan,idle_in_transaction_session_timeout,default_transaction_isolation"
    pooler = start_pgbouncer(
        postgres_server.port, tmp_path, f"pool_mode = session\nignore_startup_parameters = {names}"
    )
    yield pooler
    pooler.stop()


def test_a_pooler_that_ignores_settings_is_recognized(
    ignoring: PgBouncer, postgres_dsn: str
) -> None:
    async def check() -> None:
        await upgrade_store(ignoring.dsn(postgres_dsn))
        connection = await open_connection(ignoring.dsn(postgres_dsn))
        assert is_pooled(connection)
        assert await connection.fetchval("SELECT count(*) FROM migrations") > 0
        await connection.close()

    run(check())


def test_statements_of_several_processes_do_not_meet(pooled: str) -> None:
    """Three sessions serve them all; each transaction may get another one."""

    async def check() -> None:
        await upgrade_store(pooled)
        connections = [await open_connection(pooled) for _ in range(12)]
        for _ in range(5):
            found = await asyncio.gather(
                *(one.fetchval("SELECT count(*) FROM migrations WHERE number > $1", 0)
                  for one in connections)
            )  # fmt: skip
            assert set(found) == {found[0]}
        for one in connections:
            await one.close()

    run(check())


def test_an_error_ends_the_transaction_and_not_the_connection(pooled: str) -> None:
    async def check() -> None:
        connection = await open_connection(pooled)
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("SELECT FROM nothing_of_this_name")
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()

    run(check())


def test_a_job_goes_from_one_server_to_the_worker_of_another(pooled: str) -> None:
    async def check() -> None:
        await upgrade_store(pooled)
        async with AsyncExitStack() as stack:
            one, two = [
                await stack.enter_async_context(running_server(pooled, QUIET)) for _ in range(2)
            ]
            worker = await two.worker()
            waiting = asyncio.create_task(worker.sync(want=1, wait_ms=LONGEST_WAIT_MS))
            await until("the worker waits", two.waits, PATIENCE_S)
            number = await one.submit()
            (given,) = (await waiting).jobs
            assert given.job == number

            listening = worker.sync(want=0, received=given.lease, wait_ms=LONGEST_WAIT_MS)
            waiting = asyncio.create_task(listening)
            await until("the worker waits again", two.waits, PATIENCE_S)
            await one.admin.post(f"/api/v1/jobs/{number}/cancel")
            assert [told.job for told in (await waiting).cancel] == [number]

    run(check())


def test_jobs_are_completed_through_the_pooler(pooled: str) -> None:
    async def check() -> None:
        await upgrade_store(pooled)
        async with running_server(pooled, QUIET) as server:
            worker = await server.worker()
            numbers = [await server.submit(), await server.submit()]
            done: tuple[Finished, ...] = ()
            for number in numbers:
                (given,) = (await worker.sync(want=1, finished=done)).jobs
                assert given.job == number
                done = (Finished(given.job, given.attempt),)
            await worker.sync(want=0, received=given.lease, finished=done)
            assert {(await server.show(number))["state"] for number in numbers} == {"completed"}
            verified = (await server.admin.post("/api/v1/verify")).json()
            assert verified["violations"] == []

    run(check())


async def write(tx: WriteTx) -> None:
    await tx.catalog.put_queue(QueueRow("batch", 10, 0))


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY])
def test_a_commit_that_is_not_answered_is_looked_up(
    fault: Fault, open_store: OpenStore, pooled: str
) -> None:
    """Whether PostgreSQL gets what a client sent last is the pooler's choice; both are told."""

    async def check() -> None:
        async with (
            open_store("witness") as witness,
            proxy_to(pooled) as (proxy, detour),
            open_store("s1", dsn=detour) as store,
        ):
            await store.read(nothing)
            proxy.fault = fault
            unknown, done = False, True
            try:
                await store.transact(write)
            except StoreUnavailable as error:
                unknown, done = error.outcome_unknown, False
            assert not unknown
            assert bool((await witness.snapshot()).queues) is done
            assert proxy.fault is Fault.NONE

    run(check())


async def nothing(_tx: ReadTx) -> None:
    """Only opens the connection."""


def test_with_a_way_past_the_pooler_news_come_at_once(
    open_store: OpenStore, pgbouncer: PgBouncer, postgres_dsn: str
) -> None:
    async def check() -> None:
        past = pgbouncer.dsn(postgres_dsn, listen=True)
        async with open_store("s1", dsn=past) as one, open_store("s2", dsn=past) as two:
            heard: asyncio.Queue[News] = asyncio.Queue()
            two.subscribe(heard.put_nowait)
            one.announce(News(catalog=True))  # which a poll never tells
            assert await asyncio.wait_for(heard.get(), PATIENCE_S) == News(catalog=True)

    run(check())


def test_the_way_past_the_pooler_has_the_same_user_database_and_parameters() -> None:
    dsn = "postgresql://me:pw@pooler:6432/jobs?sslmode=require&direct=db1:5432"
    assert addresses(dsn) == (
        "postgresql://me:pw@pooler:6432/jobs?sslmode=require",
        "postgresql://me:pw@db1:5432/jobs?sslmode=require",
    )
    plain = "postgresql://me@a,b/jobs?target_session_attrs=primary"
    assert addresses(plain) == (plain, plain)
