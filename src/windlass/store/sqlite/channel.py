"""Lets processes on one database file tell each other what they have committed.

The holder of the file listens on a socket beside it, and its guests connect to that socket. Jobs
that a guest makes ready wake the holder's workers at once; guests hear which jobs have ended; and
if the holder exits in any way, the connection ends. Messages may be lost: the scheduling loop and
slow polls make up for them.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, cast

import msgspec
import structlog

from windlass.ports.loop_time import pass_time
from windlass.store.store import News

MAX_ADDRESS: Final = 100  # bytes of a socket's path; Linux takes 107
BUFFER_LIMIT: Final = 1024 * 1024  # do not wait for a neighbour that does not read
GIVE_UP: Final = b'"give up"'  # a server asks the client in its place to release the file
FIRST_PAUSE_S: Final = 0.02
MAX_PAUSE_S: Final = 1.0

_decode: Final = msgspec.json.Decoder(News).decode
_encode: Final = msgspec.json.Encoder().encode

log = structlog.get_logger()


def socket_of(database: Path) -> Path:
    """Returns where the holder of a file listens."""
    return database.with_name(database.name + ".socket")


class Neighbour(asyncio.Protocol):
    """One side of a connection: each message is a line of JSON."""

    def __init__(
        self,
        hear: Callable[[News], None],
        ended: Callable[["Neighbour"], None],
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        self._hear = hear
        self._ended = ended
        self._asked = asked
        self._rest = b""
        self._transport: asyncio.WriteTransport | None = None

    def tell(self, line: bytes) -> None:
        """Sends a message, unless the other side does not listen."""
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size() < BUFFER_LIMIT:
            transport.write(line)

    def hang_up(self) -> None:
        """Closes the connection after sending pending messages."""
        if self._transport is not None:
            self._transport.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop has its own types

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == GIVE_UP:
                self._asked()
                continue
            with suppress(msgspec.DecodeError):  # from another version; polls make up for it
                self._hear(_decode(line))

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._ended(self)


class Hub:
    """The holder's side."""

    def __init__(
        self, database: Path, hear: Callable[[News], None], asked: Callable[[], None]
    ) -> None:
        self._database = database
        self._hear = hear
        self._asked = asked
        self._guests: dict[Neighbour, None] = {}
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Starts listening; replaces the socket of a dead holder."""
        path = socket_of(self._database)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.fchmod(listener.fileno(), 0o600)  # the socket's file gets this mode when it is bound
            with _address(path) as address:
                listener.bind(address)
        except OSError as error:
            listener.close()
            log.warning("no_channel", path=str(path), error=str(error))
            return
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._welcome, sock=listener)

    def tell(self, news: News) -> None:
        """Tells guests only about ended jobs and changed queues: they need nothing else."""
        if self._guests and (news.ended or news.ended_workflows or news.catalog):
            line = _line(news._replace(arrivals=(), pokes=(), due_at=0))
            for guest in self._guests:
                guest.tell(line)

    async def close(self) -> None:
        """Closes all connections; guests then see that nobody holds the file."""
        if self._server is not None:
            self._server.close()
            socket_of(self._database).unlink(missing_ok=True)
        for guest in list(self._guests):
            guest.hang_up()

    def _welcome(self) -> Neighbour:
        guest = Neighbour(
            self._hear, lambda guest: self._guests.pop(guest, None) and None, self._asked
        )
        self._guests[guest] = None
        return guest


class Link:
    """A guest's side: keeps a connection to the holder of the file.

    `vacant` is called repeatedly while there is nobody to connect to, until `close`.
    """

    def __init__(
        self, database: Path, hear: Callable[[News], None], vacant: Callable[[], None]
    ) -> None:
        self._database = database
        self._hear = hear
        self._vacant = vacant
        self._holder: Neighbour | None = None
        self._broken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects, or starts trying to."""
        await self._connect()
        self._task = asyncio.get_running_loop().create_task(self._stay())

    def tell(self, news: News) -> None:
        """Passes everything to the holder."""
        if self._holder is not None:
            self._holder.tell(_line(news))

    async def close(self) -> None:
        """Closes the connection and stops trying."""
        if self._task is not None:
            self._task.cancel()
        if self._holder is not None:
            self._holder.hang_up()

    async def _stay(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            if self._holder is not None:
                await self._broken.wait()
                pause = FIRST_PAUSE_S
            self._vacant()
            await pass_time(pause)
            pause = min(2 * pause, MAX_PAUSE_S)
            if await self._connect():
                self._hear(News(catalog=True))  # messages sent meanwhile are lost

    async def _connect(self) -> bool:
        self._broken.clear()
        neighbour = Neighbour(self._hear, self._lose)
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.setblocking(False)
        try:
            with _address(socket_of(self._database)) as address:
                line.connect(address)
        except OSError:
            line.close()
            return False
        await asyncio.get_running_loop().create_unix_connection(lambda: neighbour, sock=line)
        self._holder = neighbour
        return True

    def _lose(self, neighbour: Neighbour) -> None:
        if neighbour is self._holder:
            self._holder = None
        self._broken.set()


async def ask_for_file(database: Path, patience_s: float) -> bool:
    """Asks the holder of a file to release it; returns True if it has closed the connection in
    time.
    """
    with suppress(OSError, TimeoutError):
        with _address(socket_of(database)) as address:
            reader, writer = await asyncio.open_unix_connection(address)
        try:
            writer.write(GIVE_UP + b"\n")
            async with asyncio.timeout(patience_s):
                while await reader.read(BUFFER_LIMIT):
                    pass  # It continues to tell its guests what happens.
            return True
        finally:
            writer.close()
    return False


def _line(news: News) -> bytes:
    return _encode(news) + b"\n"


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """Returns a path that is short enough for a socket's address, however deep the file is."""
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
