"""A pool of connections that limits how many are open, idle, and how old they get.

asyncpg's own pool has neither an idle limit nor a lifetime. This one belongs to the event loop that
made it, which also runs its timers.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]
else:
    _Connection = asyncpg.Connection

CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 60.0

# Without these settings the planner, which cannot know the length of an array, reads whole tables
# into hash joins: the cost of a claim would grow with the length of the queue. A walk
# in steps would read the whole rest by a bitmap at each step.
# A transaction that its server has forgotten loses its locks after a minute.
SETTINGS = {
    "search_path": "windlass",
    "application_name": "windlass",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": "60s",
    "default_transaction_isolation": "read committed",
}

# A pooler lends a different session to each transaction, so each transaction sets them.
SET_LOCAL: Final = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in SETTINGS.items())

DIRECT: Final = "direct"  # the parameter with the address that bypasses the pooler


class PoolLimits(NamedTuple):
    """How many connections may be open and idle, and for how many milliseconds."""

    open: int = 25
    idle: int = 5
    lifetime_ms: int = 300_000
    idle_ms: int = 60_000


class PoolCounts(NamedTuple):
    """How many connections the pool holds now, and how often a caller has had to wait."""

    open: int
    idle: int
    in_use: int
    waits: int


@dataclass(slots=True, eq=False)
class Link:
    """One open connection; `slot` is a small number no other open connection has."""

    connection: "asyncpg.Connection[Any]"
    slot: int
    born: float
    idle_since: float = field(init=False)
    pooled: bool = field(init=False)
    used: bool = False
    process: int = 0
    round: int = 0  # the pool's round when it was opened
    started_us: int = 0
    """The server's process of this session and when it began; read when it is first used, and
    in each transaction through a pooler."""
    transaction_us: int = 0  # when the transaction began, through a pooler
    run: tuple[Any, ...] = ()  # of the cluster that was greeted
    mark: int = 0
    """The mark of the newest transaction; random where the session begins."""
    warned: bool = False
    """Whether the database has warned of something since this was set."""

    def __post_init__(self) -> None:
        self.idle_since = self.born
        self.pooled = is_pooled(self.connection)

    def hear(self, _connection: object, message: asyncpg.PostgresLogMessage) -> None:
        """Receives a notice from the database."""
        self.warned |= message.severity_en == "WARNING"

    def next_mark(self) -> int:
        """Returns a number that no other transaction of any session has."""
        self.mark += 1
        return self.mark


class PooledConnection(_Connection):
    """A connection through a pooler, where a session lasts for one transaction.

    Each transaction begins with our settings. A statement outside gets a transaction of its own.
    """

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        if self.is_in_transaction():
            return await super().execute(query, *args, timeout=timeout)
        if query.startswith("BEGIN"):
            return await super().execute(f"{query.removesuffix(';')}; {SET_LOCAL}")
        async with self.transaction():
            return await super().execute(query, *args, timeout=timeout)

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        async with self._some_transaction():
            return await super().fetch(query, *args, **options)

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        async with self._some_transaction():
            return await super().fetchval(query, *args, **options)

    @asynccontextmanager
    async def _some_transaction(self) -> AsyncIterator[None]:
        if self.is_in_transaction():
            yield
            return
        async with self.transaction():
            yield


def is_pooled(connection: object) -> bool:
    """Returns True if there is a pooler in front of the database."""
    return type(connection) is PooledConnection  # asyncpg overrides `isinstance`


def addresses(dsn: str) -> tuple[str, str]:
    """Returns the address for transactions, and the one for what needs a session.

    `?direct=HOST:PORT` in the address of a pooler names the database behind it.
    """
    parts = urlsplit(dsn)
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    direct = dict(parameters).get(DIRECT, "")
    kept = [pair for pair in parameters if pair[0] != DIRECT]
    if len(kept) == len(parameters):
        return dsn, dsn
    plain = parts._replace(query=urlencode(kept, safe="/"))
    user, at, place = parts.netloc.rpartition("@")
    return plain.geturl(), plain._replace(netloc=f"{user}{at}{direct or place}").geturl()


async def open_connection(dsn: str) -> "asyncpg.Connection[Any]":
    """Connects with the settings that all statements of the store rely on.

    A pooler refuses or ignores them, and announces another process than the one that answers. Then
    the connection prepares no statements and sets them for each transaction.
    """
    address, _ = addresses(dsn)
    try:
        connection = await asyncpg.connect(
            address,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings=SETTINGS,
            statement_cache_size=250,
            max_cached_statement_lifetime=0,
        )
    except asyncpg.ProtocolViolationError:
        return await _open_pooled(address)
    if await _answers_itself(connection):
        return connection
    await _close(connection)
    return await _open_pooled(address)


async def _open_pooled(address: str) -> "asyncpg.Connection[Any]":
    return await asyncpg.connect(
        address,
        timeout=CONNECT_SECONDS,
        command_timeout=COMMAND_SECONDS,
        statement_cache_size=0,
        connection_class=PooledConnection,
    )


async def _answers_itself(connection: "asyncpg.Connection[Any]") -> bool:
    """Returns True if the announced process is the one that answers.

    Without parameters, the statement is not prepared: a pooler may know its name already.
    """
    try:
        process = connection.get_server_pid()
        status = await connection.execute(f"SELECT WHERE pg_backend_pid() = {process}")
    except BaseException:
        connection.terminate()
        raise
    return status == "SELECT 1"


class Pool:
    """Lends connections, the most recently used first, so that the others grow old."""

    def __init__(
        self,
        dsn: str,
        limits: PoolLimits,
        greet: Callable[[Link], Awaitable[None]] | None = None,
    ) -> None:
        """`greet` is called with each new connection before it is lent."""
        self._dsn = dsn
        self._limits = limits
        self._greet = greet
        self.round = 0  # how often it was renewed
        self._loop = asyncio.get_running_loop()
        self._idle: list[Link] = []
        self._free_slots = list(range(limits.open, 0, -1))
        self._waiters: deque[asyncio.Future[Link | None]] = deque()
        self._closing: set[asyncio.Task[None]] = set()
        self._waits = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def counts(self) -> PoolCounts:
        opened = self._limits.open - len(self._free_slots)
        return PoolCounts(opened, len(self._idle), opened - len(self._idle), self._waits)

    async def acquire(self) -> Link:
        """Returns an open connection for the caller alone, who must `release` or `discard` it."""
        while True:
            if self._closed:
                raise asyncpg.InterfaceError("the pool is closed")
            link = self._take_idle()
            if link is None and self._free_slots:
                link = await self._open()
            elif link is None:
                link = await self._wait()
            if link is not None:
                return link

    def renew(self) -> None:
        """Retires all open connections: none of them is lent again."""
        self.round += 1
        while self._idle:
            self._retire(self._idle.pop())

    def release(self, link: Link) -> None:
        """Takes back a connection that is outside any transaction."""
        link.used = True
        if self._closed or link.connection.is_closed() or self._is_old(link):
            self._retire(link)
        elif not self._hand_over(link):
            link.idle_since = self._loop.time()
            self._idle.append(link)
            if len(self._idle) > self._limits.idle:
                self._retire(self._idle.pop(0))
            self._sweep_at(self._end_of(link))

    def discard(self, link: Link) -> None:
        """Closes a connection whose state is unknown; the server rolls back what is open."""
        link.connection.terminate()
        self._free(link)

    async def close(self) -> None:
        """Closes idle connections now, and those in use when they are returned."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._retire(self._idle.pop())
        while self._hand_over(None):
            pass
        if self._closing:
            await asyncio.wait(set(self._closing))

    def _take_idle(self) -> Link | None:
        while self._idle:
            link = self._idle.pop()
            if not link.connection.is_closed() and not self._is_old(link):
                return link
            self._retire(link)
        return None

    async def _open(self) -> Link:
        slot = self._free_slots.pop()
        connection = None
        try:
            connection = await open_connection(self._dsn)
            link = Link(connection, slot, self._loop.time())
            connection.add_log_listener(link.hear)
            if self._greet is not None:
                await self._greet(link)
            link.round = self.round
            return link
        except BaseException:
            if connection is not None:
                connection.terminate()
            self._free_slots.append(slot)
            self._hand_over(None)
            raise

    async def _wait(self) -> Link | None:
        """Returns a connection that another caller released, or None if a new one may be opened."""
        self._waits += 1
        waiter: asyncio.Future[Link | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())
            raise

    def _pass_on(self, link: Link | None) -> None:
        if link is None:
            self._hand_over(None)
        else:
            self.release(link)

    def _hand_over(self, link: Link | None) -> bool:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(link)
                return True
        return False

    def _retire(self, link: Link) -> None:
        """Closes a connection in the background."""
        if not link.connection.is_closed():
            task = self._loop.create_task(_close(link.connection))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._free(link)

    def _free(self, link: Link) -> None:
        self._free_slots.append(link.slot)
        self._hand_over(None)

    def _is_old(self, link: Link) -> bool:
        if link.round != self.round:
            return True
        return self._loop.time() - link.born >= self._limits.lifetime_ms / 1000

    def _sweep_at(self, when: float) -> None:
        """Sweeps by then. The timer may be early: what it waited for may have been used since."""
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._sweep)

    def _end_of(self, link: Link) -> float:
        idle_end = link.idle_since + self._limits.idle_ms / 1000
        return min(idle_end, link.born + self._limits.lifetime_ms / 1000)

    def _sweep(self) -> None:
        now = self._loop.time()
        self._timer = None
        for link in [link for link in self._idle if self._end_of(link) <= now]:
            self._idle.remove(link)
            self._retire(link)
        if self._idle:
            self._sweep_at(min(map(self._end_of, self._idle)))


async def _close(connection: "asyncpg.Connection[Any]") -> None:
    try:
        await connection.close(timeout=CONNECT_SECONDS)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
