"""Runs transactions over pooled connections, with retries.

A transaction is tried again after a serialization failure or a deadlock. When the answer
to COMMIT is lost, the mark that it left tells what became of it; the outcome is never guessed.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import asyncpg

from windlass.domain.rows.gaps import Mark
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.postgres.connections import Link, Pool
from windlass.store.postgres.failures import (
    RETRY,
    describe,
    is_lost,
    outcome_unknown,
    raise_as_unavailable,
    wary,
    was_committed,
)
from windlass.store.postgres.flow import PostgresFlow
from windlass.store.postgres.places import PostgresLeases, PostgresPlaces
from windlass.store.postgres.roles import (
    PostgresCatalog,
    PostgresJobs,
    PostgresLimits,
    PostgresLog,
    PostgresPlacement,
    PostgresRetention,
    PostgresWorkflows,
)
from windlass.store.postgres.session import QUERIES, Rows, Session
from windlass.store.postgres.views import PostgresViews
from windlass.store.sql.transaction import WriteTx

T = TypeVar("T")
U = TypeVar("U")

TRIES = 10
MARKS = 256  # if the end of the log is lost, so is one of the newest commits
SMALL_STEP_MS = 60_000


class Transactions:
    """Runs transactions for one server; counts its statements."""

    def __init__(self, dsn: str, pool: Pool) -> None:
        self._dsn = dsn
        self._pool = pool
        self._latest = 0
        self._ending: set[asyncio.Task[None]] = set()
        self.statements = 0
        self.marks: deque[Mark] = deque(maxlen=MARKS)
        """The newest events whose commits were answered."""

    async def write(self, work: Callable[[WriteTx], Awaitable[T]]) -> T:
        """Runs `work` and commits; repeats it after a serialization failure or a deadlock."""
        for _ in range(TRIES - 1):
            try:
                return await self._write_once(work)
            except RETRY:
                continue
        try:
            return await self._write_once(work)
        except RETRY as error:
            raise StoreUnavailable(describe(error), outcome_unknown=False) from error

    async def read(self, work: Callable[[WriteTx], Awaitable[T]]) -> T:
        """Runs `work` on one snapshot."""
        return await self.read_rows(lambda session, now: work(self._roles(session, now)))

    async def read_beside(
        self,
        work: Callable[[WriteTx, T], Awaitable[U]],
        rows: Callable[[Session], Awaitable[T]],
    ) -> U:
        """Runs `work` on one snapshot, with rows that `rows` has read from it."""

        async def both(session: Session, now: int) -> U:
            return await work(self._roles(session, now), await rows(session))

        return await self.read_rows(both)

    async def read_rows(self, work: Callable[[Session, int], Awaitable[T]]) -> T:
        """Runs `work` on one snapshot, with a session instead of roles.

        It returns before the transaction has ended, since that changes nothing.
        """
        session, now = await self._begin("begin_read")
        result = await self._work(session, work(session, now))
        ending = asyncio.get_running_loop().create_task(self._end_read(session))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return result

    async def _end_read(self, session: Session) -> None:
        try:
            await session.execute("end_read")
        except BaseException as error:
            self._pool.discard(session.link)
            if not isinstance(error, Exception):
                raise
        else:
            self._give_back(session)

    async def end_reads(self) -> None:
        """Waits for transactions whose results were already returned."""
        if self._ending:
            await asyncio.wait(self._ending)

    async def fetch(self, name: str, *args: object) -> Rows:
        """Runs one statement in its own transaction."""
        session = Session(await self._acquire())
        rows = await self._work(session, self._alone(session, name, args))
        self._give_back(session)
        return rows

    async def call(
        self,
        name: str,
        args: Callable[[Link, int], Sequence[object]],
        resolve: Callable[[Link, BaseException], Awaitable[Sequence[Any] | None]],
    ) -> Sequence[Any] | None:
        """Runs one statement that commits by itself and returns one row.

        `args` gets the connection and the latest known time. If the answer is lost, `resolve` finds
        out what it was. Returns None if the database was restarted meanwhile: the caller's
        knowledge is older than that.
        """
        began = self._pool.round
        session = Session(await self._acquire())
        if began != self._pool.round:
            self._give_back(session)
            return None
        try:
            with wary(session.link):
                rows = await self._alone(session, name, args(session.link, self._latest))
        except BaseException as error:
            if not is_lost(error) and isinstance(error, Exception):
                if session.link.pooled:
                    await self._roll_back(session, error)
                else:
                    self._give_back(session)
                raise_as_unavailable(error)
            self._pool.discard(session.link)
            if not is_lost(error):
                raise
            return await resolve(session.link, error)
        self._give_back(session)
        return tuple(rows[0])

    def forget_time(self) -> None:
        """Lets the time go back as far as it likes. For tests only."""
        self._latest = 0

    async def _write_once(self, work: Callable[[WriteTx], Awaitable[T]]) -> T:
        session, now = await self._begin("begin")
        result = await self._work(session, work(self._roles(session, now)))
        await self._commit(session, now)
        if session.event is not None:
            self.marks.append(session.event)
        return result

    def note(self, event: int | None, at: int) -> None:
        """Remembers the last event of an answered commit, if it wrote one."""
        if event is not None:
            self.marks.append(Mark(event, at))

    async def greet(
        self,
        link: Link,
        first: Callable[[WriteTx], Awaitable[None]],
        then: Callable[[WriteTx], Awaitable[None]],
    ) -> None:
        """Writes and then reads on a connection that nobody else has used."""
        for how, work in (("begin", first), ("begin_read", then)):
            session = Session(link)
            now = await self._start(session, how)
            await work(self._roles(session, now))
            await session.execute("end_read")

    async def _begin(self, how: str) -> tuple[Session, int]:
        """Begins on a working connection: idle ones may have broken unnoticed."""
        while True:
            session = Session(await self._acquire())
            try:
                return session, await self._start(session, how)
            except BaseException as error:
                self._pool.discard(session.link)
                if not (session.link.used and is_lost(error)):
                    raise_as_unavailable(error)

    async def _start(self, session: Session, how: str) -> int:
        """Begins a transaction and returns the time."""
        await session.execute(how)
        if session.link.pooled:
            await self._recognize(session)
        return self.tell_time(await session.fetch_value("now"))

    async def _recognize(self, session: Session) -> None:
        """Notes which session the pooler lends to this transaction.

        Raises if the database server is not the one that was greeted: a pooler hides a restart or a
        failover.
        """
        link = session.link
        found = (await session.fetch("pooled_session"))[0]
        link.process, link.started_us, link.transaction_us, started = found
        if link.run and link.run[-1] != started:
            self._pool.renew()
            raise asyncpg.InterfaceError("the pooler leads to a server that was just started")

    def _alone(
        self, session: Session, name: str, args: Sequence[object]
    ) -> Coroutine[Any, Any, Rows]:
        """Runs one statement that commits by itself."""
        if session.link.pooled:
            return self._alone_in_pool(session, name, args)
        return session.fetch(name, *args)

    async def _alone_in_pool(self, session: Session, name: str, args: Sequence[object]) -> Rows:
        await session.execute("begin")
        await self._recognize(session)
        rows = await session.fetch(name, *args)
        await session.execute("end_read")
        return rows

    async def _work(self, session: Session, working: Awaitable[T]) -> T:
        """Awaits the work, and rolls back if it fails."""
        try:
            return await working
        except BaseException as error:
            await self._roll_back(session, error)
            raise_as_unavailable(error)

    async def _roll_back(self, session: Session, error: BaseException) -> None:
        if is_lost(error) or not isinstance(error, Exception):
            self._pool.discard(session.link)
            return
        try:
            await session.execute("rollback")
        except BaseException as lost:
            self._pool.discard(session.link)
            if not isinstance(lost, Exception):
                raise
        else:
            self._give_back(session)

    async def _commit(self, session: Session, now: int) -> None:
        link = session.link
        mark = link.next_mark()
        try:
            with wary(link):
                await session.commit(mark, now)
        except BaseException as error:
            self._pool.discard(link)
            if not is_lost(error):
                raise_as_unavailable(error)
            committed = await was_committed(self._dsn, link, mark, now)
            if committed is None:
                raise outcome_unknown(error) from error
            if not committed:
                raise StoreUnavailable(describe(error), outcome_unknown=False) from error
            return
        self._give_back(session)

    async def _acquire(self) -> Link:
        """Returns a connection, and makes sure that we know when its session began."""
        try:
            link = await self._pool.acquire()
        except Exception as error:
            raise_as_unavailable(error)
        if not link.started_us:
            try:
                known = await link.connection.fetch(QUERIES["session"])
                link.process, link.started_us, link.mark = known[0]
            except BaseException as error:
                self._pool.discard(link)
                raise_as_unavailable(error)
        return link

    def _give_back(self, session: Session) -> None:
        self.statements += session.statements
        self._pool.release(session.link)

    def tell_time(self, now: int) -> int:
        """Returns the time: after a small step back it stands still, a large step it follows."""
        if self._latest - SMALL_STEP_MS > now or self._latest < now:
            self._latest = now
        return self._latest

    def _roles(self, session: Session, now: int) -> WriteTx:
        return WriteTx(
            now=now,
            session=session,
            jobs=PostgresJobs(session),
            places=PostgresPlaces(session),
            leases=PostgresLeases(session),
            workflows=PostgresWorkflows(session),
            limits=PostgresLimits(session),
            catalog=PostgresCatalog(session),
            log=PostgresLog(session),
            flow=PostgresFlow(session),
            views=PostgresViews(session),
            retention=PostgresRetention(session),
            placement=PostgresPlacement(session),
        )
