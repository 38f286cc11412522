"""Accepts connections, counts those of each caller, and sees each from its admission to its end.

A connection belongs to its address until a request on it presents a valid token; then it belongs
to that token. So thousands of workers behind one address do not compete with each other.

Event loops tell protocols about a TLS connection only when its handshake is complete. Half-open
ones would not be counted, and so we accept ourselves and pass the socket on.
"""

import asyncio
import errno
import resource
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from ipaddress import ip_address
from itertools import islice
from typing import Any, Final, cast

import structlog

from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.values.addresses import is_in, parse_networks
from windlass.server.connections.guarded_http import GuardedHttp
from windlass.server.connections.refusals import FULL, FULL_FOR_CALLER, Count, Reason, Refusal
from windlass.server.connections.tls import Certificates, names_of

FILES_KEPT: Final = 256  # open files that are not connections: the store, blobs, processes
LOOKED_AT: Final = 2_000  # connections, until we give up to find one without a request
UNLIMITED: Final = 2**31

Owner = str | int  # an address, or the number of a token

MAX_ADDRESS: Final = 64

AT_ONCE: Final = 64  # connections that are accepted before others get their turn
PAUSE_SECONDS: Final = 0.5  # when there are no more files
SHUTDOWN_SECONDS: Final = 5.0  # for the end of a TLS connection
NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = structlog.get_logger("windlass.server")


class Census:
    """All connections of a server, in the order in which they came."""

    def __init__(self, limits: HttpLimits, count: Count) -> None:
        self._per_owner = limits.connections_per_caller
        self._most = min(limits.connections, _files_for_connections())
        self._count = count
        self._by_owner: dict[Owner, dict[Connection, None]] = {}
        self._strangers: dict[Connection, None] = {}  # those that belong to an address
        self.size = 0

    def __iter__(self) -> Iterator["Connection"]:
        return iter([one for connections in self._by_owner.values() for one in connections])

    def admit(self, connection: "Connection", limited: bool = True) -> Refusal | None:
        """Counts a new connection, or says why there is no room for it.

        An older one without a request makes room. A proxy's connections are not `limited`.
        """
        if limited and not self._has_room_for(connection.owner):
            self._count(FULL_FOR_CALLER.reason)
            return FULL_FOR_CALLER
        if self.size >= self._most:
            self._count(FULL.reason)
            if not _end_one(self._strangers):
                return FULL
        self._add(connection)
        self._strangers[connection] = None
        return None

    def claim(self, connection: "Connection", token: int | str) -> None:
        """Notes that a connection belongs to a token from now on."""
        if connection not in self._by_owner.get(connection.owner, ()):
            return  # it is gone
        self._remove(connection)
        if not self._has_room_for(token):
            self._count(FULL_FOR_CALLER.reason)
        connection.owner = token
        self._add(connection)

    def leave(self, connection: "Connection") -> None:
        """Forgets a connection that has ended."""
        if connection in self._by_owner.get(connection.owner, ()):
            self._remove(connection)

    def _has_room_for(self, owner: Owner) -> bool:
        connections = self._by_owner.get(owner, {})
        return len(connections) < self._per_owner or _end_one(connections)

    def _add(self, connection: "Connection") -> None:
        self._by_owner.setdefault(connection.owner, {})[connection] = None
        self.size += 1

    def _remove(self, connection: "Connection") -> None:
        connections = self._by_owner[connection.owner]
        del connections[connection]
        if not connections:
            del self._by_owner[connection.owner]
        self._strangers.pop(connection, None)
        self.size -= 1


def _end_one(connections: dict["Connection", None]) -> bool:
    """Ends the oldest connection without a request; False if the oldest ones all have one."""
    idle = next((one for one in islice(connections, LOOKED_AT) if not one.is_busy), None)
    if idle is not None:
        idle.end()
    return idle is not None


def raise_file_limit() -> None:
    """Lets this process open as many files as it may, since each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _files_for_connections() -> int:
    """Returns how many connections the limit of open files allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else max(soft - FILES_KEPT, soft // 2)


class Corked:
    """Delays the first write until a second one, or until the end of the loop's iteration.

    uvicorn writes the head of a response before its body is known, and uvloop sends at once. Two
    packets cost a server twice as much as one, and wake the client twice.
    """

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._held is None:
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            held, self._held = self._held, None
            self._transport.writelines((held, data))

    def flush(self) -> None:
        """Sends the delayed write."""
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Reception:
    """What the connections of one server share."""

    def __init__(
        self, limits: HttpLimits, count: Count, certificates: Certificates | None = None
    ) -> None:
        self.limits = limits
        self.count = count
        self.census = Census(limits, count)
        self.certificates = certificates
        self.proxies = parse_networks(limits.trusted_proxies, "http.trusted_proxies")
        self.is_proxy = lru_cache(1_024)(self._is_proxy)

    def look(self, now: float) -> None:
        """Ends connections that take too long."""
        for connection in self.census:
            connection.look(now)

    def _is_proxy(self, address: str) -> bool:
        try:
            return is_in(ip_address(address.partition("%")[0]), self.proxies)
        except ValueError:
            return False


class Connection(asyncio.Protocol):
    """Passes everything to uvicorn's protocol, over a transport that joins writes."""

    owner: Owner = ""
    address = ""
    certificate_names: Sequence[str] = ()  # of the client, over TLS
    needs_certificate = False  # whether workers must present one

    def __init__(self, reception: Reception, options: dict[str, Any]) -> None:
        self._reception = reception
        self._http = GuardedHttp(reception.limits, reception.count, self, **options)
        self._transport: asyncio.Transport | None = None
        self.has_begun = False  # with HTTP
        self.opening: asyncio.Task[None] | None = None  # until HTTP begins
        # Event loops remember this method when a connection is made.
        self.data_received = self._http.data_received  # type: ignore[method-assign]

    @property
    def is_busy(self) -> bool:
        """Whether a request on it is being answered."""
        return self._http.is_busy

    def enter(self, address: str) -> Refusal | None:
        """Counts it, or returns why there is no room for it."""
        self.owner = self.address = address
        return self._reception.census.admit(self, not self._reception.is_proxy(address))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins with HTTP; over TLS, the handshake is complete."""
        self._transport = cast(asyncio.Transport, transport)
        self.has_begun = True
        certificates = self._reception.certificates
        if certificates is not None:
            self.needs_certificate = certificates.files.client_ca is not None
            self.certificate_names = names_of(transport)
        corked = Corked(self._transport, self._http.loop)
        self._http.connection_made(cast(asyncio.Transport, corked))

    def end(self) -> None:
        """Closes it at once and leaves the census."""
        self._reception.census.leave(self)
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def look(self, now: float) -> None:
        """Ends what takes too long; before HTTP begins, the listener sees to that."""
        if self.has_begun:
            self._http.look(now)

    def claim(self, token: int | str) -> None:
        """Notes that a request on it has presented this token."""
        if self.owner != token:
            self._reception.census.claim(self, token)

    def source(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Returns where a request comes from; trusted proxies say so in X-Forwarded-For."""
        found = self.address
        if not self._reception.proxies:
            return found
        named = [value for name, value in headers if name == b"x-forwarded-for"]
        forwarded = b",".join(named).decode("latin-1")
        for address in reversed(forwarded.split(",")):
            if not self._reception.is_proxy(found) or not address.strip():
                break
            found = address.strip()[:MAX_ADDRESS]
        return found

    def connection_lost(self, exc: Exception | None) -> None:
        self._reception.census.leave(self)
        if self.has_begun:
            self._http.connection_lost(exc)

    def eof_received(self) -> None:
        self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()


class Listener:
    """Accepts what arrives at one socket, until it is closed."""

    def __init__(
        self, bound: socket.socket, reception: Reception, connect: Callable[[], Connection]
    ) -> None:
        self._bound = bound
        self._reception = reception
        self._connect = connect
        self._opening: dict[asyncio.Task[None], None] = {}
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        bound.setblocking(False)
        self._loop.add_reader(bound, self._accept)

    def close(self) -> None:
        """Accepts nothing more, and ends connections that are not complete."""
        self._loop.remove_reader(self._bound)
        if self._pause is not None:
            self._pause.cancel()
        for opening in list(self._opening):
            opening.cancel()

    async def wait_closed(self) -> None:
        """Returns when nothing is being opened any more."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, peer = self._bound.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                if error.errno in NO_FILES:
                    self._wait_for_files(error)
                return
            address = str(peer[0]) if isinstance(peer, tuple) else ""
            self._admit(accepted, address)

    def _wait_for_files(self, error: OSError) -> None:
        log.error("too_many_files", error=error.strerror)
        self._loop.remove_reader(self._bound)
        resume = self._loop.add_reader
        self._pause = self._loop.call_later(PAUSE_SECONDS, resume, self._bound, self._accept)

    def _admit(self, accepted: socket.socket, address: str) -> None:
        accepted.setblocking(False)
        connection = self._connect()
        refusal = connection.enter(address)
        if refusal is not None:
            with accepted, suppress(OSError):
                if self._reception.certificates is None:
                    accepted.send(refusal.encode())
            return
        opening = self._loop.create_task(self._open(accepted, connection))
        connection.opening = opening
        self._opening[opening] = None
        opening.add_done_callback(partial(self._opened, accepted, connection))

    def _opened(
        self, accepted: socket.socket, connection: Connection, opening: asyncio.Task[None]
    ) -> None:
        del self._opening[opening]
        connection.opening = None
        if not connection.has_begun:
            self._reception.census.leave(connection)
            accepted.close()

    async def _open(self, accepted: socket.socket, connection: Connection) -> None:
        with suppress(OSError):  # a Unix socket has no such option
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        certificates = self._reception.certificates
        try:
            if certificates is None:
                await self._loop.connect_accepted_socket(lambda: connection, accepted)
            else:
                await self._loop.connect_accepted_socket(
                    lambda: connection, accepted, ssl=certificates.context,
                    ssl_handshake_timeout=self._reception.limits.header_timeout_ms / 1000,
                    ssl_shutdown_timeout=SHUTDOWN_SECONDS,
                )  # fmt: skip
        except OSError:  # those of TLS and timeouts are such
            self._reception.count(Reason.TLS_HANDSHAKE)
