"""Accepts connections: each is counted before it may do anything, also before its handshake.

Event loops tell protocols about a TLS connection only when its handshake is complete. Half-open
ones would not be counted, and so we accept ourselves and pass the socket on.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from windlass.server.connections.connection import Connection, Reception
from windlass.server.connections.refusals import Reason

AT_ONCE: Final = 64  # connections that are accepted before others get their turn
PAUSE_SECONDS: Final = 0.5  # when there are no more files
SHUTDOWN_SECONDS: Final = 5.0  # for the end of a TLS connection
NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = structlog.get_logger("windlass.server")


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
