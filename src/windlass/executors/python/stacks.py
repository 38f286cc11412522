"""The stack of a function, requested over a separate connection.

A thread in the function's process answers, so it works even while the function blocks, or blocks
the loop of async functions. It runs only on request.
"""

import _thread
import linecache
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from windlass.messages.files import StackFrame, StackThread

if TYPE_CHECKING:
    import asyncio

MAX_FRAMES: Final = 200  # the innermost frames of a thread
MAX_THREADS: Final = 50
MAX_TEXT: Final = 300  # characters of a line of code
NUMBER: Final = 8  # bytes
_OWN: Final = os.path.dirname(__file__) + os.sep
_MACHINERY: Final = ("<frozen runpy>", _OWN)

StacksOf = Callable[[int], "list[StackThread] | None"]  # the stack of the call with this number
decode: Final = msgspec.json.Decoder(list[StackThread] | None).decode


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


def of_task(
    task: "asyncio.Task[Any]", loop: "asyncio.AbstractEventLoop", thread: int
) -> StackThread:
    """Returns the stack of a task of this loop; `thread` is the loop's."""
    import asyncio  # takes half the start of a process, and most have no loop

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
