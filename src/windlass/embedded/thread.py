"""An event loop in a thread of its own, for programs without one.

A synchronous client of a server runs its loop only during calls. An embedded client holds the
engine, which must answer its workers while the program does something else, so its loop needs
a thread. Nothing else in Windlass starts threads for its own work.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

import uvloop

from windlass.domain.values.errors import Conflict

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads until it is closed."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._process = os.getpid()
        # A daemon, so that a program which forgot to close its client can still end: its
        # jobs are stopped by their keeper and go back to the queue.
        self._thread = threading.Thread(target=self._serve, name="windlass", daemon=True)
        self._thread.start()

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Returns or raises what `coro` does; cancels it if the wait is interrupted."""
        try:
            self._check()
        except Conflict:
            coro.close()
            raise
        call = _Call(coro, self._loop)
        self._loop.call_soon_threadsafe(call.begin)
        try:
            call.ended.acquire()
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    def close(self) -> None:
        """Stops the loop and waits for its thread."""
        if self._thread.is_alive() and os.getpid() == self._process:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            _cancel_all(self._loop)
            self._loop.close()

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise Conflict(
                "forked_client",
                "this embedded client was opened before the process forked: open one in "
                "each process",
            )
        if not self._thread.is_alive():
            raise Conflict("client_closed", "this embedded client was closed")
        if threading.current_thread() is self._thread:
            raise Conflict(
                "own_loop", "a client was called from its own event loop: use `AsyncClient` there"
            )


class _Call(Generic[T]):
    """A coroutine that one thread runs for another.

    `asyncio.run_coroutine_threadsafe` does the same with two futures and takes 1.5 times as
    long, which every submission would wait for.
    """

    __slots__ = ("_coro", "_loop", "_task", "ended")

    def __init__(self, coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._coro = coro
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self.ended = threading.Lock()  # held until the end
        self.ended.acquire()

    def begin(self) -> None:
        """Starts it; called in the loop."""
        self._task = self._loop.create_task(self._coro)
        self._task.add_done_callback(lambda _: self.ended.release())

    def result(self) -> T:
        """Returns or raises its outcome, after it has ended."""
        assert self._task is not None
        return self._task.result()

    def cancel(self) -> None:
        """Cancels it, since nobody waits; called in the loop."""
        if self._task is not None:
            self._task.cancel()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
