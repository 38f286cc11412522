"""HTTP over plain sockets, for threads that wait for their answer anyway.

A call through the event loop of another thread wakes that thread and is woken by it, which costs
more than the call itself. Only what is usual is done here: one request, one answer with its length.
Whatever is unusual closes the connection, and who asked does the call again in the loop.
"""

import os
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from windlass.client.calls import Answer

PIECE: Final = 2**16  # bytes that are read at once
MAX_HEAD: Final = 2**16  # bytes of a status line and its headers
CONNECT_SECONDS: Final = 1.0  # it answered before, so it should be quick
KEPT: Final = 16  # idle connections; each thread that calls needs one of its own


class NoAnswer(Exception):
    """There is no usual answer. The server may have carried out the call."""


class TimeIsUp(NoAnswer):
    """There is no answer in time."""


class PlainSockets:
    """Connections to one server, each for one call at a time."""

    def __init__(self, server: str, trust: ssl.SSLContext | None) -> None:
        """With `trust`, the server is called by https."""
        parts = urlsplit(server)
        self._trust = trust
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if trust else 80)
        self._path = parts.path
        self._name = parts.netloc
        # Those of this process: after a fork, the others belong to the parent.
        self._idle: deque[tuple[socket.socket, int]] = deque()
        self._is_closed = False

    def post(self, path: str, body: bytes, headers: Mapping[str, str], seconds: float) -> Answer:
        """Returns the answer to a request; raises `NoAnswer`. Each wait takes so many seconds."""
        if not all(map(str.isprintable, headers.values())):
            raise NoAnswer
        lines = [f"POST {self._path}{path} HTTP/1.1", f"Host: {self._name}"]
        lines += [f"{name}: {text}" for name, text in headers.items()]
        lines.append(f"Content-Length: {len(body)}\r\n\r\n")
        try:
            connection = self._connection()
            try:
                connection.settimeout(seconds)
                connection.sendall("\r\n".join(lines).encode("latin-1") + body)
                answer = _read(connection)
            except BaseException:
                connection.close()
                raise
        except TimeoutError as error:
            raise TimeIsUp from error
        except (OSError, ValueError) as error:
            raise NoAnswer from error
        self._keep(connection, answer)
        return answer

    def close(self) -> None:
        """Closes the idle connections, and later those in use."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[0].close()

    def _connection(self) -> socket.socket:
        while self._idle:
            connection, process = self._idle.pop()
            if process == os.getpid() and not _is_over(connection):
                return connection
            connection.close()
        made = socket.create_connection((self._host, self._port), CONNECT_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made if self._trust is None else self._secured(made, self._trust)

    def _secured(self, made: socket.socket, trust: ssl.SSLContext) -> socket.socket:
        try:
            return trust.wrap_socket(made, server_hostname=self._host)
        except BaseException:
            made.close()
            raise

    def _keep(self, connection: socket.socket, answer: Answer) -> None:
        ends = answer.headers.get("connection", "").lower() == "close"
        if ends or self._is_closed or len(self._idle) >= KEPT:
            connection.close()
        else:
            self._idle.append((connection, os.getpid()))


def _is_over(connection: socket.socket) -> bool:
    """Returns whether an idle connection was closed: then there is something to read."""
    connection.settimeout(0)
    try:
        connection.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    return True


def _read(connection: socket.socket) -> Answer:
    """Reads one answer; raises `ValueError` for one that is not usual."""
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        _receive(connection, received)
        if len(received) > MAX_HEAD:
            raise ValueError("no end of the headers")
    status, *lines = received[:end].decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, text = line.partition(":")
        headers[name.lower()] = text.strip()
    version, _, rest = status.partition(" ")
    if version != "HTTP/1.1" or "transfer-encoding" in headers or "content-encoding" in headers:
        raise ValueError("another kind of answer")
    size = end + 4 + int(headers.get("content-length", ""))
    while len(received) < size:
        _receive(connection, received)
    if len(received) > size:
        raise ValueError("more than one answer")
    return Answer(int(rest[:3]), bytes(received[end + 4 :]), headers)


def _receive(connection: socket.socket, into: bytearray) -> None:
    piece = connection.recv(PIECE)
    if not piece:
        raise ConnectionResetError
    into += piece
