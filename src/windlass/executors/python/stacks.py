"""The stack of a function, requested over a separate connection.

A thread in the function's process answers, so it works even while the function blocks, or blocks
the loop of async functions. It runs only on request.
"""

import _thread
import asyncio
import linecache
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import msgspec

from windlass.messages.files import StackFrame, StackThread

MAX_FRAMES: Final = 200  # the innermost frames of a thread
MAX_THREADS: Final = 50
MAX_TEXT: Final = 300  # characters of a line of code
NUMBER: Final = 8  # bytes
READ: Final = 65_536
_OWN: Final = os.path.dirname(__file__) + os.sep
_MACHINERY: Final = ("<frozen runpy>", _OWN)

StacksOf = Callable[[int], "list[StackThread] | None"]  # the stack of the call with this number
_decode: Final = msgspec.json.Decoder(list[StackThread] | None).decode


# In the process of the function


def answer_stacks(side: socket.socket, stacks_of: StacksOf) -> None:
    """Answers from a thread of its own, which other threads do not list."""
    _thread.start_new_thread(_serve, (side, stacks_of))


def _serve(side: socket.socket, stacks_of: StacksOf) -> None:
    try:
        while len(asked := side.recv(2 * NUMBER, socket.MSG_WAITALL)) == 2 * NUMBER:
            try:
                found = stacks_of(int.from_bytes(asked[NUMBER:], "little"))
            except Exception:  # whatever a function has done to the interpreter
                found = None
            body = msgspec.json.encode(found)
            side.sendall(asked[:NUMBER] + len(body).to_bytes(NUMBER, "little") + body)
    except OSError:
        pass  # The agent is gone.


def of_threads(first: int) -> list[StackThread]:
    """Returns the stacks of all threads but ours, the thread `first` before the others."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    own = _thread.get_ident()
    idents = [first, *(ident for ident in frames if ident not in (first, own))]
    return [
        StackThread(names.get(ident, f"thread {ident}"), _shown(list(_calls(frames[ident]))))
        for ident in idents[:MAX_THREADS]
        if ident in frames
    ]


def of_task(task: "asyncio.Task[Any]", loop: asyncio.AbstractEventLoop, thread: int) -> StackThread:
    """Returns the stack of a task of this loop; `thread` is the loop's."""
    if asyncio.current_task(loop) is task:
        running = sys._current_frames().get(thread)
        if running is not None:
            return StackThread("task, running", _shown(list(_calls(running))))
    frames = list(_awaited(task.get_coro()))
    return StackThread("task, waiting", _shown(frames))


def _calls(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """Yields the calls of a thread, the outermost first."""
    found: list[tuple[FrameType, int]] = []
    while frame is not None:
        found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return reversed(found)


def _awaited(coroutine: Any) -> Iterator[tuple[FrameType, int]]:
    """Yields the calls of a waiting coroutine, down to what it waits for."""
    while coroutine is not None:
        kind = next((k for k in ("cr", "gi", "ag") if hasattr(coroutine, f"{k}_frame")), None)
        if kind is None:
            return
        frame: FrameType | None = getattr(coroutine, f"{kind}_frame")
        if frame is not None:
            yield frame, frame.f_lineno
        inner = "gi_yieldfrom" if kind == "gi" else f"{kind}_await"
        coroutine = getattr(coroutine, inner, None)


def _shown(calls: list[tuple[FrameType, int]]) -> tuple[StackFrame, ...]:
    """Returns the frames without those that lead to the function."""
    while calls and calls[0][0].f_code.co_filename.startswith(_MACHINERY):
        del calls[0]
    return tuple(_frame(frame, line) for frame, line in calls[-MAX_FRAMES:])


def _frame(frame: FrameType, line: int) -> StackFrame:
    code = frame.f_code
    text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    return StackFrame(code.co_filename, line, code.co_qualname, text[:MAX_TEXT])


# In the agent


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
                    found: list[StackThread] | None = _decode(body)
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
