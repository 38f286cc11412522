"""A response leaves in one piece: its head waits for the first bytes of its body.

uvicorn writes the head of a response before its body is known, and uvloop sends what is
written at once. Two packets cost a server twice as much as one, and wake the client twice.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class CorkedProtocol(HttpToolsProtocol):
    """uvicorn's protocol over a transport that joins what is written in one turn."""

    def connection_made(  # type: ignore[override]  # as uvicorn's own
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(cast(asyncio.Transport, Corked(transport, self.loop)))


class Corked:
    """A transport whose first write waits for a second, until the end of the loop's turn."""

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
        """Send what waits."""
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
