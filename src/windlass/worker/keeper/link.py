"""The messages between an agent and its keeper, over a pair of sockets that nobody else has.

A frame is a length, then a marshalled list of messages; file descriptors are sent along, in order.
The standard library only: the keeper imports this file.
"""

import marshal
import os
import socket
from collections import deque
from typing import Any

READ_BYTES = 262_144
MAX_FDS = 253  # in one message of the kernel


class Link:
    """One end of the connection. The socket does not block."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._inbox = bytearray()
        self._outbox: deque[tuple[bytes, list[int]]] = deque()
        self.fds: deque[int] = deque()  # received and not taken yet

    @property
    def waiting(self) -> bool:
        """Returns whether something has to be sent."""
        return bool(self._outbox)

    def receive(self) -> list[tuple[Any, ...]] | None:
        """Returns the messages that have arrived; None if the other end is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self._sock, READ_BYTES, MAX_FDS)
        except BlockingIOError:
            return []
        except OSError:
            data, fds = b"", []
        for fd in fds:
            # A child gets the descriptors of its own job only, not those of others.
            os.set_inheritable(fd, False)
        self.fds.extend(fds)
        if not data:
            return None
        inbox, messages = self._inbox, []
        inbox += data
        while len(inbox) >= 4 and len(inbox) >= 4 + (size := int.from_bytes(inbox[:4], "big")):
            # The other end is our own process.
            messages += marshal.loads(inbox[4 : 4 + size])  # nosec B302
            del inbox[: 4 + size]
        return messages

    def add(self, messages: list[tuple[Any, ...]], fds: list[int]) -> None:
        """Adds a frame to what is sent; the descriptors are closed once they were."""
        body = marshal.dumps(messages)
        self._outbox.append((len(body).to_bytes(4, "big") + body, fds))

    def send(self) -> None:
        """Sends what the socket takes, which never blocks; raises `OSError` if that fails."""
        try:
            while self._outbox:
                data, fds = self._outbox[0]
                sent = socket.send_fds(self._sock, [data], fds) if fds else self._sock.send(data)
                for fd in fds:
                    os.close(fd)
                self._outbox[0] = (data[sent:], [])
                if sent == len(data):
                    self._outbox.popleft()
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Closes the socket, and the descriptors that were neither sent nor taken."""
        self._sock.close()
        for fd in (*self.fds, *(fd for _, fds in self._outbox for fd in fds)):
            os.close(fd)
        self.fds.clear()
        self._outbox.clear()

    def fileno(self) -> int:
        """Returns the descriptor of the socket."""
        return self._sock.fileno()
