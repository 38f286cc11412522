"""Tells other servers which jobs became ready, and hears it from them: NOTIFY and LISTEN.

NOTIFY is a separate statement after COMMIT, at most one per `notify_interval`; later news wait and
are merged. Messages may be lost: a slow poll makes up for them.

A lone engine notifies nobody. The first who listens holds a lock (`listen_first`), all others
share a second one (`listen_too`). If the first can have that for a moment, nobody else listens, and
a newcomer waits for that moment before it looks for jobs. Locks end with their sessions.

Nobody can listen through a pooler, which gives the session to others. Then the address names the
database behind it (`?direct=HOST:PORT`), or the server polls every second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import asyncpg
import msgspec
import structlog

from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.loop_time import pass_time
from windlass.store.postgres.connections import addresses, is_pooled, open_connection
from windlass.store.postgres.failures import is_unavailable
from windlass.store.postgres.session import QUERIES
from windlass.store.store import Hearers, News

log = structlog.get_logger()

CHANNEL = "windlass"
INBOX = "inbox"  # the message of functions/submit_request.sql
INTERVAL_MS = 5
RECONNECT_SECONDS = 1.0
POLL_SECONDS = 1.0  # through a pooler
PAYLOAD_BYTES = 7_900  # PostgreSQL takes less than 8,000
ARRIVALS_EACH = 90  # how many groups of four numbers of up to 20 digits fit into the payload
PAYLOADS = 32

Stacks = tuple[tuple[int, int, int, int, int], ...]
Message = tuple[str, tuple[tuple[int, int, int, int], ...], tuple[int, ...], int, bool, Stacks]

_decode = msgspec.json.Decoder(Message).decode


def merge(first: News, second: News) -> News:
    """Returns both as one."""
    times = [at for at in (first.due_at, second.due_at) if at]
    return News(
        first.arrivals + second.arrivals,
        tuple(dict.fromkeys(first.pokes + second.pokes)),
        min(times, default=0),
        first.catalog or second.catalog,
        stacks=first.stacks + second.stacks,
    )


def payloads(server: str, news: News) -> list[str]:
    """Returns the messages that carry `news`: one, or several if it is too long for one.

    Too many arrivals are first merged by shape: the best job and the number of jobs.
    """
    text = _encode(server, news)
    if len(text) <= PAYLOAD_BYTES:
        return [text]
    arrivals = by_shape(news.arrivals)
    pieces = [
        _encode(server, News(part, (), news.due_at, news.catalog))
        for part in _parts(arrivals, ARRIVALS_EACH)
    ]
    pieces += [
        _encode(server, News((), part, news.due_at, news.catalog))
        for part in _parts(news.pokes, 4 * ARRIVALS_EACH)
    ]
    pieces += [
        _encode(server, News(stacks=part)) for part in _parts(news.stacks, ARRIVALS_EACH // 2)
    ]
    return pieces[:PAYLOADS]


def by_shape(
    arrivals: Iterable[tuple[int, int, int, int]],
) -> tuple[tuple[int, int, int, int], ...]:
    """Returns the best job of each shape and the number of jobs."""
    best: dict[int, tuple[int, int, int, int]] = {}
    for arrival in arrivals:
        shape, rank, job, count = arrival
        known = best.get(shape)
        if known is not None:
            rank, job = min((rank, job), known[1:3])
            arrival = (shape, rank, job, count + known[3])
        best[shape] = arrival
    return tuple(best.values())


def _encode(server: str, news: News) -> str:
    """Returns the message. It leaves out which jobs have ended: there are too many, and few are
    waited for.
    """
    return msgspec.json.encode((server, *news[:4], news.stacks)).decode()


def _parts(items: Sequence[Any], size: int) -> Iterable[Any]:
    return (items[start : start + size] for start in range(0, len(items), size))


class Herald:
    """Sends this server's news, merged."""

    def __init__(
        self,
        server: str,
        send: Callable[[list[str]], Awaitable[None]],
        interval_ms: int = INTERVAL_MS,
    ) -> None:
        self._server = server
        self._send = send
        self._interval_s = interval_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._pending: News | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._next_at = 0.0

    def announce(self, news: News) -> None:
        """Sends at once after a quiet time, else soon, together with later news.

        Nobody waits for it.
        """
        self._pending = news if self._pending is None else merge(self._pending, news)
        if self._timer is not None or self._sending is not None:
            return
        if self._next_at <= self._loop.time():
            self._begin()
        else:
            self._timer = self._loop.call_at(self._next_at, self._begin)

    def may_tell(self) -> bool:
        """Returns True if a transaction may notify by itself: only the first after a quiet time."""
        if self._timer or self._sending or self._next_at > self._loop.time():
            return False
        self._next_at = self._loop.time() + self._interval_s
        return True

    def around(self) -> tuple[str, str]:
        """Returns the text before and after the arrivals in a message with only arrivals."""
        before, behind = _encode(self._server, News()).split("[]", 1)
        return f"{before}[", f"]{behind}"

    async def close(self) -> None:
        """Sends the remaining news."""
        while self._timer is not None or self._sending is not None:
            if self._timer is not None:
                self._timer.cancel()
                self._begin()
            if self._sending is not None:
                await asyncio.wait({self._sending})

    def _begin(self) -> None:
        self._timer = None
        self._sending = self._loop.create_task(self._deliver())

    async def _deliver(self) -> None:
        news, self._pending = self._pending, None
        try:
            if news is not None:
                await self._send(payloads(self._server, news))
        except StoreUnavailable:
            pass  # Other servers find out later by their polls.
        finally:
            self._sending = None
            self._next_at = self._loop.time() + self._interval_s
            if self._pending is not None:
                self._timer = self._loop.call_at(self._next_at, self._begin)


class Listener:
    """Listens to other servers on its own connection, which it opens again when it breaks.

    Through a pooler it polls with `look`, which takes the number of the last event seen (0: none
    yet) and returns the newest number and the news.
    """

    def __init__(
        self, dsn: str, server: str, look: Callable[[int], Awaitable[tuple[int, News]]]
    ) -> None:
        _, self._address = addresses(dsn)
        self._server = server
        self._look = look
        self.hearers = Hearers()
        self.first = False
        """Whether this one listens, and came before all others."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts listening before anyone subscribes, so that a subscriber misses nothing."""
        connection = await self._open()
        hearing = self._poll() if connection is None else self._listen(connection)
        self._task = asyncio.get_running_loop().create_task(hearing)

    async def close(self) -> None:
        self.hearers.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _open(self) -> "asyncpg.Connection[Any] | None":
        """Returns a connection that listens; None if there is a pooler in front of the database."""
        connection = await open_connection(self._address)
        try:
            if is_pooled(connection):
                await connection.close()
                return None
            first = bool(await connection.fetchval(QUERIES["listen_first"]))
            if not first:
                await connection.execute(QUERIES["listen_too"])
            await connection.add_listener(CHANNEL, self._receive)
        except BaseException:
            connection.terminate()
            raise
        self.first = first
        return connection

    async def _listen(self, connection: "asyncpg.Connection[Any] | None") -> None:
        """Keeps a connection open, one after another."""
        while connection is not None:
            try:
                await _wait_until_broken(connection)
            finally:
                self.first = False
                connection.terminate()
            connection = await self._open_again()
            # Messages sent meanwhile are lost, and caches may be stale.
            self.hearers.tell(News(catalog=True))
        await self._poll()

    async def _poll(self) -> None:
        """Polls; reads each event twice, because they are not committed in order."""
        before = newest = 0
        while True:
            await pass_time(POLL_SECONDS)
            if not self.hearers:
                continue
            try:
                found, news = await self._look(before)
            except StoreUnavailable:
                continue
            before, newest = newest or found, found
            if news != News():
                self.hearers.tell(news)

    async def _open_again(self) -> "asyncpg.Connection[Any] | None":
        while True:
            try:
                return await self._open()
            except Exception as error:
                # Retry after any error: without the connection this server would hear nothing more.
                if not is_unavailable(error):
                    log.error("listen_failed", error=str(error), exc_info=error)
            await pass_time(RECONNECT_SECONDS)

    def _receive(self, _connection: object, _process: int, _channel: str, payload: object) -> None:
        if payload == INBOX:
            self.hearers.tell(News(inbox=True))
            return
        try:
            server, arrivals, pokes, due_at, catalog, stacks = _decode(str(payload))
        except msgspec.DecodeError:
            return  # Anyone may notify; ignore messages that are not ours.
        if server != self._server:
            self.hearers.tell(News(arrivals, pokes, due_at, catalog, stacks=stacks))


async def _wait_until_broken(connection: "asyncpg.Connection[Any]") -> None:
    broken = asyncio.Event()
    connection.add_termination_listener(lambda _: broken.set())
    if not connection.is_closed():
        await broken.wait()
