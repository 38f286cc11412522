"""One connection, from its admission to its end, over a transport that joins writes."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, cast

from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.values.addresses import is_in, parse_networks
from windlass.server.connections.census import Census, Owner
from windlass.server.connections.guarded_http import GuardedHttp
from windlass.server.connections.refusals import Count, Refusal
from windlass.server.connections.tls import Certificates, names_of

MAX_ADDRESS: Final = 64


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
        for guest in self.census:
            guest.look(now)

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
