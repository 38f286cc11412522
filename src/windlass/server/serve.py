"""Runs the application on a socket until it is told to stop."""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

import msgspec
import uvicorn

from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.values.errors import InvalidInput
from windlass.ports.loop_time import pass_time
from windlass.server.connections.connection import Connection, Listener, Reception
from windlass.server.connections.refusals import Count
from windlass.server.connections.tls import Certificates, TlsFiles

GRACE_SECONDS = 10  # for requests that have work to do; those that wait are answered at once
UNREAD_SECONDS = 1  # after a stop, for clients that do not read what was sent
BACKLOG = 2_048
NEVER_SECONDS: Final = 10**6
TICK_SECONDS: Final = 0.1  # as uvicorn counts on
LOOK_SECONDS: Final = 1.0  # between two looks at connections and certificates

# What anybody can make uvicorn log, and what we do on purpose.
_NO_NEWS: Final = (
    "Invalid HTTP request",
    "Unsupported upgrade request",
    "No supported WebSocket library",
    "returned without completing response",
)


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen; with `tls`, over TLS."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: TlsFiles | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"


def parse_listen(text: str) -> tuple[str, int]:
    """Parses `HOST:PORT`, with brackets around an IPv6 address."""
    host, separator, port = text.rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not separator or not is_number or int(port) > 65_535:
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
        hint = "port 0 picks a free one" if error.errno == errno.EADDRINUSE else ""
        raise InvalidInput("listen", f"a free address ({error.strerror})", where, hint) from None
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
        limits: HttpLimits = HttpLimits(),  # noqa: B008 - it never changes
        count: Count = lambda _: None,
    ) -> None:
        """`stop_waiting` ends long waits; it is called when no request can follow them.

        `count` is told of each refusal.
        """
        self._bound = bound
        shortest = min(limits.header_timeout_ms, limits.body_timeout_ms, limits.send_timeout_ms)
        self._look_seconds = min(LOOK_SECONDS, shortest / 4_000)
        self._certificates = None if listen.tls is None else Certificates(listen.tls)
        self._reception = Reception(limits, count, self._certificates)
        config = uvicorn.Config(
            application,
            loop="none",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # The reception knows which proxies are trusted.
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=NEVER_SECONDS,  # each look ends what is idle
        )
        self._server = _QuietServer(config, self._reception, stop_waiting)
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._reception.census.size

    def reload_certificate(self) -> None:
        """Loads the certificate and its key again; open connections keep theirs."""
        if self._certificates is not None:
            self._certificates.reload()

    def start(self) -> None:
        """Starts to answer."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._server.serve([self._bound]))
        self._looking = loop.create_task(self._keep_looking())

    async def stop(self) -> None:
        """Accepts nothing more, answers open requests, and stops."""
        self._server.end()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        if self._looking is not None:
            self._looking.cancel()

    async def _keep_looking(self) -> None:
        """Ends connections that take too long, and notices a new certificate."""
        loop = asyncio.get_running_loop()
        while True:
            await pass_time(self._look_seconds)
            self._reception.look(loop.time())
            if self._certificates is not None:
                self._certificates.reload_changed()


class _QuietServer(uvicorn.Server):
    """Leaves signals to the caller, whose handlers uvicorn would replace, and admission to us."""

    def __init__(
        self, config: uvicorn.Config, reception: Reception, stop_waiting: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._reception = reception
        self._stop_waiting = stop_waiting
        self._ending = asyncio.Event()
        logging.getLogger("uvicorn.error").addFilter(_is_news)

    def end(self) -> None:
        """Begins to stop, without the pause until uvicorn would look."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Does what uvicorn does at each look, until this is to end."""
        looks = 0
        while not await self.on_tick(looks):
            looks += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._ending.wait()

    def capture_signals(self) -> Any:
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts connections ourselves, which uvicorn's protocol then serves."""

        def connect() -> Connection:
            options = {"config": self.config, "server_state": self.server_state, "app_state": {}}
            return Connection(self._reception, options)

        servers: Any = [Listener(bound, self._reception, connect) for bound in sockets or ()]
        self.servers = servers
        self.started = True

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
    message = record.getMessage()
    return not any(known in message for known in _NO_NEWS)
