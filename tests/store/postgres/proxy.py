"""A TCP proxy before PostgreSQL that loses connections exactly at COMMIT, or at another word."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from urllib.parse import urlsplit, urlunsplit

COMMIT = b"COMMIT\0"


class Fault(Enum):
    """What happens to the next COMMIT."""

    NONE = auto()
    LOSE_REQUEST = auto()  # it never reaches the server, which sees the connection end
    LOSE_REQUEST_SILENTLY = auto()  # the same, but the server believes the client lives
    LOSE_REPLY = auto()  # it is carried out, and the answer is lost


class Proxy:
    """Forwards bytes both ways; `fault` applies to the next COMMIT and then is gone."""

    def __init__(self, host: str, port: int, word: bytes) -> None:
        self._host = host
        self._port = port
        self._word = word
        self.fault = Fault.NONE
        self.refuses = False
        """Whether new connections are closed at once."""
        self.stays_down = False
        """Whether it begins to refuse when the fault strikes."""
        self._writers: list[asyncio.StreamWriter] = []

    def lead_to(self, port: int) -> None:
        """Break every connection, and lead the next ones to another server of this machine."""
        self._port = port
        self.cut()

    def cut(self) -> None:
        """Break every connection now."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, server_writer]
        replies = asyncio.create_task(_copy(server_reader, writer))
        try:
            await self._requests(reader, writer, server_writer, replies)
        except ConnectionError:
            pass
        finally:
            await replies
            server_writer.transport.abort()
            writer.transport.abort()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: asyncio.StreamWriter,
        replies: "asyncio.Task[None]",
    ) -> None:
        while data := await reader.read(65536):
            if self._word in data and self.fault is not Fault.NONE:
                await self._strike(data, writer, server, replies)
                return
            server.write(data)
            await server.drain()
        server.transport.abort()

    async def _strike(
        self,
        data: bytes,
        writer: asyncio.StreamWriter,
        server: asyncio.StreamWriter,
        replies: "asyncio.Task[None]",
    ) -> None:
        fault, self.fault = self.fault, Fault.NONE
        self.refuses = self.stays_down
        writer.transport.abort()
        if fault is Fault.LOSE_REPLY:
            server.write(data)
            await server.drain()
            server.write_eof()  # The server carries out what it has read, then ends.
        elif fault is Fault.LOSE_REQUEST:
            server.transport.abort()
        await replies


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward until the sender ends; what the receiver no longer takes is thrown away."""
    try:
        while data := await reader.read(65536):
            if not writer.transport.is_closing():
                writer.write(data)
    except ConnectionError:
        pass
    writer.transport.abort()


@asynccontextmanager
async def proxy_to(dsn: str, word: bytes = COMMIT) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy and the address that leads through it to `dsn`; faults apply to `word`."""
    parts = urlsplit(dsn)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port, word)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    netloc = f"{parts.username}@127.0.0.1:{port}"
    try:
        yield proxy, urlunsplit(parts._replace(netloc=netloc)) + "?sslmode=disable"
    finally:
        proxy.cut()
        server.close()
        await server.wait_closed()
