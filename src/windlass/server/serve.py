"""Runs the application on a socket until it is told to stop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from windlass.domain.values.errors import InvalidInput
from windlass.server.corking import CorkedProtocol

GRACE_SECONDS = 10  # for requests that have work to do; those that wait are answered at once
UNREAD_SECONDS = 1  # after a stop, for clients that do not read what was sent
BACKLOG = 2_048


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen; with a certificate and key, over TLS."""

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"


def parse_listen(text: str) -> tuple[str, int]:
    """Parses `HOST:PORT`, with brackets around an IPv6 address."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65_535:
        raise InvalidInput("listen", "HOST:PORT", text)
    return host.strip("[]") or "127.0.0.1", int(port)


def bind(listen: Listen) -> socket.socket:
    """Binds the address, before anything else starts."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # The protocol is named because event loops turn Nagle's algorithm off only on sockets
    # that name it; with it on, an answer in two parts waits 40 ms for an acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listen.host, listen.port))
        # From now on clients wait instead of being refused.
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        where = f"{listen.host}:{listen.port}"
        raise InvalidInput("listen", f"a free address ({error.strerror})", where) from None
    return bound


def address_of(listen: Listen, bound: socket.socket) -> str:
    """Returns the address that clients use."""
    host, port = bound.getsockname()[:2]
    return f"{listen.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


class Serving:
    """A server that shares its event loop with other tasks."""

    def __init__(
        self,
        application: Any,
        listen: Listen,
        bound: socket.socket,
        stop_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        """`stop_waiting` ends long waits; it is called when no request can follow them."""
        self._bound = bound
        config = uvicorn.Config(
            application,
            loop="none",
            http=CorkedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # Nothing here uses the client's address, so no proxy is trusted about it.
            proxy_headers=False,
            ssl_certfile=listen.certificate,
            ssl_keyfile=listen.key,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=75,
        )
        self._server = _QuietServer(config, stop_waiting)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts to answer."""
        self._task = asyncio.get_running_loop().create_task(self._server.serve([self._bound]))

    async def stop(self) -> None:
        """Accepts nothing more, answers open requests, and stops."""
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def until_stopped(self, stop: asyncio.Event) -> None:
        """Answers until `stop` is set, and stops."""
        self.start()
        await stop.wait()
        await self.stop()


class _QuietServer(uvicorn.Server):
    """Leaves signals to the caller: uvicorn would replace its handlers."""

    def __init__(self, config: uvicorn.Config, stop_waiting: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop_waiting = stop_waiting
        # We cut endless streams off when we stop, so that clients know there is more.
        logging.getLogger("uvicorn.error").addFilter(_is_news)

    def capture_signals(self) -> Any:
        return contextlib.nullcontext()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes the sockets, then ends long waits: clients that are answered cannot ask again."""
        loop = asyncio.get_running_loop()
        loop.call_soon(self._stop_waiting)  # runs when uvicorn first waits
        abort = loop.call_later(UNREAD_SECONDS, self._abort_closing)
        await super().shutdown(sockets)
        abort.cancel()

    def _abort_closing(self) -> None:
        """Drops connections that are closed, but whose clients do not read the rest."""
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None and transport.is_closing():
                transport.abort()


def _is_news(record: logging.LogRecord) -> bool:
    return "returned without completing response" not in record.getMessage()
