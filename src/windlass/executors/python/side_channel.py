"""The agent's end of the connection over which it asks a process for the stack of a function."""

import asyncio
import socket
from typing import Final

from windlass.executors.python.stacks import NUMBER, decode
from windlass.messages.files import StackThread

READ: Final = 65_536


class SideChannel:
    """The agent's end of the connection."""

    def __init__(self, side: socket.socket) -> None:
        side.setblocking(False)
        self._side = side
        self._asked = 0
        self._data = bytearray()
        self._turn = asyncio.Lock()

    async def ask(self, seq: int) -> list[StackThread] | None:
        """Returns the stack of this call; None if it does not run there."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            self._asked += 1
            number = self._asked.to_bytes(NUMBER, "little")
            await loop.sock_sendall(self._side, number + seq.to_bytes(NUMBER, "little"))
            while True:  # Skips an answer that came too late for its caller.
                answered, body = await self._next()
                if answered == number:
                    found: list[StackThread] | None = decode(body)
                    return found

    async def _next(self) -> tuple[bytes, bytes]:
        """Returns the next answer; keeps what has arrived if nobody waits any more."""
        loop, data = asyncio.get_running_loop(), self._data
        while True:
            end = 2 * NUMBER + int.from_bytes(data[NUMBER : 2 * NUMBER], "little")
            if len(data) >= max(end, 2 * NUMBER):
                answer = bytes(data[:NUMBER]), bytes(data[2 * NUMBER : end])
                del data[:end]
                return answer
            part = await loop.sock_recv(self._side, READ)
            if not part:
                raise ConnectionError("the process has ended")
            data += part

    def close(self) -> None:
        """Ends the thread at the other end."""
        self._side.close()


def side_channel() -> tuple[SideChannel, socket.socket]:
    """Returns both ends of a connection; the second is for the process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return SideChannel(ours), theirs
