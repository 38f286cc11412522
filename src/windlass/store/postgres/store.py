"""The store on PostgreSQL: transactions over pooled connections, and what goes around them.

A transaction is tried again after a serialization failure or deadlock. When the answer to
COMMIT is lost, the database is asked what became of it; the outcome is never guessed.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Self, TypeVar

import asyncpg

from windlass.domain.errors import StoreUnavailable
from windlass.domain.events import Event
from windlass.ports.store import News, Snapshot, Tx
from windlass.store.postgres import migrate
from windlass.store.postgres.catalog import PostgresCatalog
from windlass.store.postgres.failures import RETRY, describe, is_lost, is_unavailable
from windlass.store.postgres.jobs import PostgresJobs
from windlass.store.postgres.leases import PostgresLeases
from windlass.store.postgres.limits import PostgresLimits
from windlass.store.postgres.log import PostgresLog, events_of
from windlass.store.postgres.news import Herald, Listener
from windlass.store.postgres.numbers import Numbers
from windlass.store.postgres.outcome import was_committed
from windlass.store.postgres.places import PostgresPlaces
from windlass.store.postgres.pool import Link, Pool, PoolCounts, PoolLimits, open_connection
from windlass.store.postgres.session import QUERIES, UNLOCKED, Session
from windlass.store.postgres.snapshot import take_snapshot
from windlass.store.postgres.tail import Tail
from windlass.store.postgres.workers import PostgresWorkers
from windlass.store.postgres.workflows import PostgresWorkflows

T = TypeVar("T")

TRIES = 10
JOB_BLOCK = 100
SMALL_STEP_MS = 60_000


class PostgresTx(NamedTuple):
    """One transaction: the roles, and the moment it takes place."""

    now: int
    jobs: PostgresJobs
    places: PostgresPlaces
    leases: PostgresLeases
    workers: PostgresWorkers
    workflows: PostgresWorkflows
    limits: PostgresLimits
    catalog: PostgresCatalog
    log: PostgresLog


class PostgresStore:
    """One engine's access to a database that it may share with others.

    Make it with `connect`, on the event loop that will use it, and `close` it in the end.
    """

    def __init__(self, dsn: str, server: str, limits: PoolLimits) -> None:
        self._dsn = dsn
        self._server = server
        self._pool = Pool(dsn, limits)
        self._jobs = Numbers("job_numbers", JOB_BLOCK)
        self._workflows = Numbers("workflow_numbers", 1)
        self._herald = Herald(server, self._notify)
        self._listener = Listener(dsn, server)
        self._tail = Tail(self)
        self._checked = False
        self._latest = 0
        self.statements = 0
        """How many statements were sent, BEGIN and COMMIT included."""

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
    ) -> Self:
        """Connect as `server`; a database without the right schema takes only `upgrade()`.

        `pool_open` and `pool_idle` limit the connections, `lifetime_ms` and `idle_ms` how
        long one is kept. LISTEN uses one more.
        """
        store = cls(dsn, server, PoolLimits(pool_open, pool_idle, lifetime_ms, idle_ms))
        try:
            store._pool.release(await store._pool.acquire())
        except Exception as error:
            raise _unavailable(error) from error
        return store

    @property
    def shared(self) -> bool:
        return True

    @property
    def inline(self) -> bool:
        return False

    @property
    def pool(self) -> PoolCounts:
        """How many connections are open, idle and in use, and how often one was waited for."""
        return self._pool.counts

    async def transact(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        for _ in range(TRIES - 1):
            try:
                return await self._run(work, "begin", QUERIES)
            except RETRY:
                continue
        return await self._run(work, "begin", QUERIES)

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await self._run(work, "begin_read", UNLOCKED)

    async def snapshot(self) -> Snapshot:
        link, _ = await self._begin("begin_read")
        return await self._finish(Session(link, UNLOCKED), take_snapshot)

    async def announce(self, news: News) -> None:
        self._herald.announce(news)

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        return self._listener.subscribe(hear)

    async def listening(self) -> None:
        """Return once the subscription reaches the database."""
        await self._listener.listening.wait()

    async def read_settled(self, after: int, count: int) -> list[Event]:
        """Events behind `after` that nothing can come before any more. One caller at a time."""
        return await self._tail.read(after, count)

    async def upgrade(self) -> None:
        """Bring the schema up to date; `windlass db upgrade`."""
        connection = await open_connection(self._dsn)
        try:
            await migrate.upgrade(connection)
        finally:
            await connection.close()

    async def check_schema(self) -> None:
        """Raise `Conflict`, naming the way out, unless the schema is the expected one."""
        connection = await open_connection(self._dsn)
        try:
            await migrate.check(connection)
        finally:
            await connection.close()
        self._checked = True

    async def set_clock(self, ms: int | None) -> None:
        """Tests only: the time of all servers on this database; None for the real one."""
        connection = await open_connection(self._dsn)
        try:
            if ms is not None:
                await connection.execute(QUERIES["inject_clock"], ms)
            await connection.execute(
                QUERIES["use_real_clock" if ms is None else "use_injected_clock"]
            )
        finally:
            await connection.close()
        self._latest = 0

    async def close(self) -> None:
        await self._herald.close()
        await self._listener.close()
        await self._pool.close()
