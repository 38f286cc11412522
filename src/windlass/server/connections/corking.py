"""Sends a response in one piece: its head waits for the first bytes of its body.

uvicorn writes the head of a response before its body is known, and uvloop sends at once. Two
packets cost a server twice as much as one, and wake the client twice.
"""

import asyncio
from typing import Any


class Corked:
    """Delays the first write until a second one, or until the end of the loop's iteration."""

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
