"""The store on PostgreSQL: many servers share one database, which decides everything.

`open_patiently` waits while the database starts, restarts, or has no connection left. Servers and
workers are often started together with it; ending at once would only make somebody start them
again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TypeVar

import asyncpg
import structlog

from windlass.domain.rows.events import Event
from windlass.domain.rows.gaps import Mark
from windlass.domain.values.addresses import without_password
from windlass.domain.values.errors import Conflict, StoreUnavailable
from windlass.domain.values.options import shown_ms
from windlass.ports.loop_time import pass_time
from windlass.store.postgres import migrate
from windlass.store.postgres.connections import (
    Link,
    Pool,
    PoolCounts,
    PoolLimits,
    open_connection,
)
from windlass.store.postgres.failures import raise_as_unavailable
from windlass.store.postgres.fast_path import PostgresFastPath
from windlass.store.postgres.news import INTERVAL_MS, Herald, Listener
from windlass.store.postgres.session import QUERIES, Session
from windlass.store.postgres.settled_events import SettledEvents
from windlass.store.postgres.transactions import Transactions
from windlass.store.sql.snapshot import Snapshot, take_snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import Follower, News

T = TypeVar("T")

IDENTITY: Final = "identity"  # in `meta`


class PostgresStore:
    """One engine's access to a database, which it may share with others.

    Open it with `connect`, on the event loop that will use it, and `close` it at the end.
    """

    def __init__(self, dsn: str, server: str, limits: PoolLimits, notify_ms: int) -> None:
        self._dsn = dsn
        self._pool = Pool(dsn, limits, self._greet)
        self._transactions = Transactions(dsn, self._pool)
        self._herald = Herald(server, self._notify, notify_ms)
        self._listener = Listener(dsn, server, self._look_around)
        self._fast_path: PostgresFastPath | None = PostgresFastPath(
            dsn, self._transactions, self._herald, lambda: self._listener.first
        )
        self._settled = SettledEvents(self._read_events, self._event_writers)
        self._checked = False
        self._follower: Follower | None = None
        self._run: Sequence[object] = ()  # the cluster's start that the follower has seen
        self._greeting = asyncio.Lock()

    @classmethod
    async def connect(
        cls,
        dsn: str,
        server: str = "s1",
        *,
        pool_open: int = 25,
        pool_idle: int = 5,
        lifetime_ms: int = 300_000,
        idle_ms: int = 60_000,
        notify_ms: int = INTERVAL_MS,
        fast_path: bool = True,
    ) -> Self:
        """Connects as `server`, a name that no other server on this database has.

        `pool_open` and `pool_idle` limit the connections, `lifetime_ms` and `idle_ms` how long one
        is kept; LISTEN uses one more. Other servers are notified at most every `notify_ms`. Without
        `fast_path` every command takes the normal path. A database without the expected schema
        accepts only `upgrade()`.
        """
        store = cls(dsn, server, PoolLimits(pool_open, pool_idle, lifetime_ms, idle_ms), notify_ms)
        if not fast_path:
            store._fast_path = None
        try:
            await store._listener.start()
        except Exception as error:
            raise_as_unavailable(error)
        return store

    @property
    def shared(self) -> bool:
        return True

    @property
    def inline(self) -> bool:
        return False

    @property
    def fast_path(self) -> PostgresFastPath | None:
        """Returns the fast path for submit and sync; None if the store was opened without it."""
        return self._fast_path

    @property
    def pool(self) -> PoolCounts:
        """Returns how many connections are open, idle and in use, and how often callers had to
        wait.
        """
        return self._pool.counts

    @property
    def statements(self) -> int:
        """Returns how many statements were sent, including BEGIN and COMMIT; each is a round
        trip.
        """
        return self._transactions.statements

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        del rows  # it waits for the database, and others go on
        if not self._checked:
            await self.check_schema()
        return await self._transactions.write(work)

    async def now(self) -> int:
        if not self._checked:
            await self.check_schema()
        return self._transactions.tell_time((await self._transactions.fetch("now"))[0][0])

    async def read(self, work: Callable[[ReadTx], Awaitable[T]], rows: int = 0) -> T:
        del rows  # The database reads them in its own process.
        if not self._checked:
            await self.check_schema()
        return await self._transactions.read(work)

    async def snapshot(self) -> Snapshot:
        if not self._checked:
            await self.check_schema()
        return await self._transactions.read_rows(lambda session, _: _take_filled(session))

    async def read_beside(self, work: Callable[[ReadTx, Snapshot], Awaitable[T]]) -> T:
        if not self._checked:
            await self.check_schema()
        return await self._transactions.read_beside(work, _take_filled)

    async def read_settled(self, after: int, count: int) -> list[Event]:
        """Returns the events after `after` up to which the log is final. Takes one caller at a
        time.
        """
        return await self._settled.read(after, count)

    async def be_followed(self, follower: Follower) -> None:
        """Calls `follower` now, and before the first use of a restarted cluster."""
        self._follower = follower
        self._pool.renew()
        await self._transactions.fetch("now")  # on a new connection, which is greeted

    @property
    def newest_mark(self) -> Mark | None:
        """Returns the newest event whose commit was answered to this engine."""
        return self._transactions.marks[-1] if self._transactions.marks else None

    def announce(self, news: News) -> None:
        self._herald.announce(news)

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        return self._listener.hearers.add(hear)

    async def upgrade(self) -> None:
        """Brings the schema up to date, as `windlass db upgrade` does."""
        await self._on_own_connection(migrate.upgrade)

    async def check_schema(self) -> None:
        """Raises `Conflict`, naming the remedy, unless the schema has the expected version.

        Functions that have changed are replaced.
        """
        known = await self._transactions.fetch("has_migrations")
        found = await self._transactions.fetch("schema_version") if known[0][0] else [(0,)]
        migrate.check(found[0][0], self._dsn)
        applied = await self._transactions.fetch("functions_digest")
        if applied[0][0] != migrate.functions_digest():
            await self._on_own_connection(migrate.apply_functions)
        self._checked = True

    async def check_identity(self) -> None:
        """Raises `Conflict` if a dump was restored since a server last used the database."""
        noted = await self._transactions.fetch("noted_identity")
        if not noted:
            await self.note_identity()
        elif noted[0][0] != (await self._transactions.fetch("identity"))[0][0]:
            address = without_password(self._dsn)
            raise Conflict(
                "store_restored",
                "the database was restored from a dump, or copied. Workers may know more than it "
                f"does: run `windlass db restored --store {address}`, then start again",
            )

    async def note_identity(self) -> None:
        """Lets the database count as the one to continue."""
        identity = (await self._transactions.fetch("identity"))[0][0]
        await self._transactions.fetch("set_meta", IDENTITY, identity)

    async def set_clock(self, ms: int | None) -> None:
        """Sets the time of all servers on this database; None: the real time. For tests only."""

        async with self.connection() as connection:
            if ms is None:
                await connection.execute(migrate.function_files()["windlass_now.sql"])
                self.forget_time()
            else:
                await connection.execute(QUERIES["inject_clock"], ms)
                await connection.execute(QUERIES["use_injected_clock"])

    def forget_time(self) -> None:
        """Lets the time go back as far as it likes. For tests only."""
        self._transactions.forget_time()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Lends a connection of the pool, for the caller's own statements."""
        link = await self._pool.acquire()
        try:
            yield link.connection
        except BaseException:
            self._pool.discard(link)
            raise
        self._pool.release(link)

    async def close(self) -> None:
        """Sends the remaining news, then closes every connection."""
        await self._herald.close()
        await self._listener.close()
        await self._transactions.end_reads()
        await self._pool.close()

    async def _greet(self, link: Link) -> None:
        """Lets the follower see a cluster before anything else uses it."""
        follower = self._follower
        if follower is None:
            return
        run = link.run = tuple((await link.connection.fetch(QUERIES["run"]))[0])
        async with self._greeting:
            if run == self._run:
                return
            marks = tuple(self._transactions.marks)
            await self._transactions.greet(
                link, lambda tx: follower.follow(tx, marks), follower.followed
            )
            if self._run:
                self._pool.renew()
            self._run = run

    async def _on_own_connection(
        self, work: Callable[["asyncpg.Connection[Any]"], Awaitable[None]]
    ) -> None:
        try:
            connection = await open_connection(self._dsn)
            try:
                await work(connection)
            finally:
                await connection.close()
        except Exception as error:
            raise_as_unavailable(error)

    async def _notify(self, payloads: list[str]) -> None:
        await self._transactions.fetch("notify", payloads, self._listener.first)

    async def _look_around(self, after: int) -> tuple[int, News]:
        """Returns the newest event, and the news since event `after`.

        On the first call (0), anything may have happened.
        """

        async def read(session: Session, _now: int) -> tuple[int, News]:
            newest = await session.fetch_value("newest_event")
            if not after:
                return newest, News(catalog=True)
            arrivals = await session.fetch("polled_arrivals", after)
            workers = await session.fetch("polled_workers", after)
            return newest, News(tuple(map(tuple, arrivals)), tuple(row[0] for row in workers))

        return await self._transactions.read_rows(read)

    async def _read_events(self, after: int, count: int) -> list[Event]:
        rows = await self._transactions.fetch("read_events", after, count)
        return list(map(Event._make, rows))

    async def _event_writers(self) -> set[str]:
        return {row[0] for row in await self._transactions.fetch("event_writers")}


async def _take_filled(session: Session) -> Snapshot:
    """Reads only tables with rows: most are often empty, and each costs a round trip."""
    return await take_snapshot(session, {row[0] for row in await session.fetch("filled")})


PAUSE_SECONDS: Final = 0.5
SAY_AGAIN_SECONDS: Final = 10.0

log = structlog.get_logger()


async def open_patiently(
    connect: Callable[[], Awaitable[PostgresStore]],
    limit_ms: int,
    stopped: Callable[[], bool] = lambda: False,
    restored: bool = False,
) -> PostgresStore:
    """Connects, if necessary with retries for `limit_ms`, and checks the database.

    Raises `StoreUnavailable` if none came in time or the process is `stopped` meanwhile, and at
    once if waiting does not help: a wrong password, an unknown database. Raises `Conflict` if the
    schema is another one or, unless it may be `restored`, the database was restored from a dump.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + limit_ms / 1000
    say_at = loop.time()
    while True:
        try:
            return await _open(connect, restored)
        except StoreUnavailable as error:
            if not limit_ms or error.code != StoreUnavailable.code:
                raise
            if loop.time() >= give_up_at or stopped():
                ending = "stopped" if stopped() else f"gave up after {shown_ms(limit_ms)}"
                message = f"{error.message} ({ending}; store_wait sets how long to wait)"
                raise StoreUnavailable(message, outcome_unknown=False) from error
            if loop.time() >= say_at:
                left = max(0, round(1000 * (give_up_at - loop.time())))
                log.warning("waiting_for_store", error=error.message, at_most=shown_ms(left))
                say_at = loop.time() + SAY_AGAIN_SECONDS
        await pass_time(min(PAUSE_SECONDS, limit_ms / 1000))


async def _open(connect: Callable[[], Awaitable[PostgresStore]], restored: bool) -> PostgresStore:
    store = await connect()
    try:
        await store.check_schema()
        if not restored:
            await store.check_identity()
    except BaseException:
        await store.close()
        raise
    return store
