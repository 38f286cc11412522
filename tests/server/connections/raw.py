"""Speaks to a server byte by byte, as no honest client would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE_S = 60.0


class Wire(NamedTuple):
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Sends what the server takes; it may have closed the connection."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def rest(self) -> bytes:
        """Returns everything up to the end of the connection, which must come."""
        received = b""
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError):
                while chunk := await self.reader.read(65_536):
                    received += chunk
        return received

    async def answer(self) -> bytes:
        """Returns the next answer, whose body has a known length."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            fields = head.lower().split(b"\r\n")
            sizes = [int(f.split(b":")[1]) for f in fields if f.startswith(b"content-length:")]
            return head + await self.reader.readexactly(sizes[0] if sizes else 0)

    def close(self) -> None:
        """Closes it at once."""
        self.writer.transport.abort()


def place_of(address: str) -> tuple[str, int]:
    """Host and port of a server."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@asynccontextmanager
async def wire_to(address: str) -> AsyncIterator[Wire]:
    """Connects, and closes in the end."""
    wire = Wire(*await asyncio.open_connection(*place_of(address)))
    try:
        yield wire
    finally:
        wire.close()


def status_of(answer: bytes) -> int:
    """The status of the first answer; 0 if there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def request(path: str = "/healthz", *fields: str, method: str = "GET") -> bytes:
    """A complete head."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *fields]
    return "\r\n".join([*lines, "", ""]).encode()
