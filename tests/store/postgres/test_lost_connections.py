"""Connections that break: before, during and after COMMIT. The outcome is never guessed."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.proxy import Fault, Proxy, proxy_to
from tests.support.postgres import PostgresServer
from tests.support.running import run
from tests.support.waiting import until
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import QueueRow
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.postgres import failures, transactions
from windlass.store.postgres.failures import raise_as_unavailable
from windlass.store.postgres.roles import PostgresLog
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import News

EVENT = Event(0, 1, EventKind.JOB, 7, 0, 0, 0, 0, 2, None, None, None)
Check = Callable[[PostgresStore, PostgresStore, Proxy], Awaitable[None]]


async def write(tx: WriteTx) -> str:
    await tx.catalog.put_queue(QueueRow("batch", 10, 0))
    await tx.log.append([EVENT])
    return "done"


async def write_without_events(tx: WriteTx) -> None:
    await tx.catalog.put_queue(QueueRow("batch", 10, 0))


def through_proxy(open_store: OpenStore, dsn: str, check: Check) -> None:
    """Call `check` with a store behind the proxy and one that sees what is really there."""

    async def work() -> None:
        async with (
            open_store("witness") as witness,
            proxy_to(dsn) as (proxy, detour),
            open_store("s1", dsn=detour) as store,
        ):
            await check(store, witness, proxy)

    run(work())


async def written(witness: PostgresStore) -> bool:
    snapshot = await witness.snapshot()
    events = await witness.read(lambda tx: tx.log.read(0, 10))
    assert len(snapshot.queues) == len(events)
    return bool(events)


def test_a_commit_whose_answer_is_lost_is_found_to_have_happened(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        proxy.fault = Fault.LOSE_REPLY
        assert await store.transact(write) == "done"
        assert await written(witness)

    through_proxy(open_store, postgres_dsn, check)


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REQUEST_SILENTLY])
def test_a_commit_that_never_arrived_is_found_not_to_have_happened(
    open_store: OpenStore, postgres_dsn: str, fault: Fault
) -> None:
    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        proxy.fault = fault
        with pytest.raises(StoreUnavailable) as lost:
            await store.transact(write)
        assert not lost.value.outcome_unknown
        assert not await written(witness)
        assert await store.transact(write) == "done"
        assert await written(witness)

    through_proxy(open_store, postgres_dsn, check)


def test_an_outcome_nobody_can_tell_is_said_to_be_unknown(
    open_store: OpenStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "GIVE_UP_SECONDS", 0.2)

    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        proxy.fault = Fault.LOSE_REPLY
        proxy.stays_down = True
        with pytest.raises(StoreUnavailable) as lost:
            await store.transact(write)
        assert lost.value.outcome_unknown
        with pytest.raises(StoreUnavailable) as refused:
            await store.transact(write)
        assert not refused.value.outcome_unknown

    through_proxy(open_store, postgres_dsn, check)


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_a_server_that_takes_no_writes_is_not_asked(
    open_store: OpenStore, postgres_dsn: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address may lead to a standby by now, which can lack what was committed."""
    monkeypatch.setattr(failures, "GIVE_UP_SECONDS", 0.5)
    name = postgres_dsn.rpartition("/")[2]

    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        async def become_standby(tx: WriteTx) -> None:
            await write(tx)
            async with witness.connection() as connection:
                alter = f"ALTER DATABASE {name} SET default_transaction_read_only = on"
                await connection.execute(alter)

        proxy.fault = fault
        with pytest.raises(StoreUnavailable) as lost:
            await store.transact(become_standby)
        assert lost.value.outcome_unknown

    through_proxy(open_store, postgres_dsn, check)


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_what_wrote_no_events_is_known_as_well(
    open_store: OpenStore, postgres_dsn: str, fault: Fault
) -> None:
    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        proxy.fault = fault
        if fault is Fault.LOSE_REPLY:
            await store.transact(write_without_events)
        else:
            with pytest.raises(StoreUnavailable) as lost:
                await store.transact(write_without_events)
            assert not lost.value.outcome_unknown
        there = len((await witness.snapshot()).queues)
        assert there == (fault is Fault.LOSE_REPLY)

    through_proxy(open_store, postgres_dsn, check)


def test_what_wrote_nothing_leaves_no_mark(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store() as store:
            await at_minute(store, 1)
            await store.transact(lambda tx: tx.catalog.queues())
            assert await marks(store, 1) == 0
            await store.transact(write_without_events)
            assert await marks(store, 1) == 1

    run(check())


async def marks(store: PostgresStore, minute: int) -> int:
    """How many transactions of this minute left a mark."""
    async with store.connection() as connection:
        every = "SELECT at FROM commits_even UNION ALL SELECT at FROM commits_odd"
        return [row[0] for row in await connection.fetch(every)].count(minute * 60_000)


def test_marks_are_forgotten_when_they_are_old(open_store: OpenStore, postgres_dsn: str) -> None:
    """After that, the outcome of such a commit is not known any more."""

    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        await at_minute(store, 1)
        await store.transact(write_without_events)
        for minute, left in ((7, 1), (21, 1), (24, 1), (26, 0)):
            await at_minute(witness, minute)
            await witness.transact(forget)
            assert await marks(witness, 1) == left, minute
        assert await marks(witness, 26) == 1
        for minute, unknown in ((2, False), (1, True)):
            await at_minute(store, minute)
            proxy.fault = Fault.LOSE_REQUEST
            with pytest.raises(StoreUnavailable) as lost:
                await store.transact(write_without_events)
            assert lost.value.outcome_unknown is unknown, minute

    through_proxy(open_store, postgres_dsn, check)


async def forget(tx: WriteTx) -> None:
    await tx.retention.forget_commits()


async def at_minute(store: PostgresStore, minute: int) -> None:
    await store.set_clock(minute * 60_000)
    store.forget_time()


def test_marks_that_somebody_reads_are_forgotten_later(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> None:
        async with open_store() as store:
            await at_minute(store, 1)
            await store.transact(write_without_events)
            await at_minute(store, 30)
            reader = await asyncpg.connect(postgres_dsn)
            async with reader.transaction():
                await reader.execute("SELECT FROM windlass.commits_even")
                await store.transact(forget)
                assert await marks(store, 1) == 1
            await reader.close()
            await store.transact(forget)
            assert await marks(store, 1) == 0

    run(check())


def test_a_connection_lost_before_commit_changes_nothing(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        async def lose(tx: WriteTx) -> None:
            await write(tx)
            proxy.cut()
            await tx.catalog.queues()

        with pytest.raises(StoreUnavailable) as lost:
            await store.transact(lose)
        assert not lost.value.outcome_unknown
        assert not await written(witness)

    through_proxy(open_store, postgres_dsn, check)


def test_idle_connections_that_broke_are_replaced(open_store: OpenStore, postgres_dsn: str) -> None:
    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        await store.transact(write_without_events)
        assert store.pool.idle == 1
        proxy.cut()
        assert await store.transact(write) == "done"

    through_proxy(open_store, postgres_dsn, check)


def test_a_server_that_ends_the_session_is_unavailable(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store() as store:

            async def end_oneself(tx: WriteTx) -> None:
                await write(tx)
                assert isinstance(tx.log, PostgresLog)
                connection = tx.log._session.link.connection
                await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

            with pytest.raises(StoreUnavailable) as lost:
                await store.transact(end_oneself)
            assert not lost.value.outcome_unknown
            assert not await written(store)

    run(check())


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY])
def test_what_a_read_found_counts_even_if_its_end_is_lost(
    open_store: OpenStore, postgres_dsn: str, fault: Fault
) -> None:
    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        for read in (lambda: store.read(lambda tx: tx.catalog.queues()), store.snapshot):
            proxy.fault = fault
            await read()
            await until_unused(store)
            assert store.pool.open == 0, "a connection of unknown state is not used again"
            await read()
            await until_unused(store)

    through_proxy(open_store, postgres_dsn, check)


def test_a_read_whose_session_ends_before_its_end_has_found_what_it_found(
    open_store: OpenStore, postgres_server: PostgresServer
) -> None:
    async def check() -> None:
        async with open_store() as store:

            async def end_oneself(tx: ReadTx) -> str:
                await tx.catalog.queues()
                postgres_server.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE state = 'idle in transaction'"
                )
                return "read"

            assert await store.read(end_oneself) == "read"
            await until_unused(store)
            assert store.pool.open == 0
            assert await store.read(lambda tx: tx.catalog.queues()) == []

    run(check())


async def until_unused(store: PostgresStore) -> None:
    async def unused() -> bool:
        return store.pool.in_use == 0

    await until("reads ended", unused, 30)


def test_news_that_cannot_be_sent_are_given_up_quietly(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    complaints: list[object] = []

    async def check(store: PostgresStore, witness: PostgresStore, proxy: Proxy) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: complaints.append(about))
        proxy.refuses = True
        proxy.cut()
        store.announce(News(catalog=True))
        await store.close()
        gc.collect()

    through_proxy(open_store, postgres_dsn, check)
    assert complaints == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncpg.TooManyConnectionsError, "store_unavailable"),
        (asyncpg.DiskFullError, "store_unavailable"),
        (asyncpg.LockNotAvailableError, "store_unavailable"),
        (asyncpg.PostgresIOError, "store_unavailable"),
        (asyncpg.DataCorruptedError, "store_unavailable"),
        (asyncpg.TransactionTimeoutError, "store_unavailable"),
        (asyncpg.InvalidPasswordError, "store_refused"),
        (asyncpg.InvalidCatalogNameError, "store_refused"),
        (asyncpg.InsufficientPrivilegeError, "store_refused"),
    ],
)
def test_what_the_database_cannot_do_is_not_our_fault(error: type[Exception], code: str) -> None:
    with pytest.raises(StoreUnavailable, match="PostgreSQL") as told:
        raise_as_unavailable(error("why"))
    assert told.value.code == code


def test_serialization_failures_and_deadlocks_are_tried_again(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store() as store:
            failures: list[type[Exception]] = [
                asyncpg.SerializationError,
                asyncpg.DeadlockDetectedError,
            ]

            async def work(tx: WriteTx) -> str:
                answer = await write(tx)
                if failures:
                    raise failures.pop()("not this time")
                return answer

            assert await store.transact(work) == "done"
            assert len(await store.read(lambda tx: tx.log.read(0, 10))) == 1

    run(check())


def test_trying_again_has_an_end(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store() as store:
            calls = []

            async def work(tx: WriteTx) -> None:
                calls.append(await write(tx))
                raise asyncpg.DeadlockDetectedError("again")

            with pytest.raises(StoreUnavailable) as lost:
                await store.transact(work)
            assert not lost.value.outcome_unknown
            assert len(calls) == transactions.TRIES
            assert not await written(store)

    run(check())
