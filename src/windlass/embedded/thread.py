"""An event loop in a thread of its own, for programs without one.

A synchronous client with a server runs its loop only while it is called. An embedded one
holds the engine, whose workers must be heard while the program does something else, so
its loop needs a thread. Nothing else of Windlass starts threads for its own work.
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
    """Runs coroutines for other threads, from `__init__` to `close`."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._process = os.getpid()
        # A daemon, so that a program which forgot to close its client can still end: its
        # jobs are stopped by their keeper and go back to the queue.
        self._thread = threading.Thread(target=self._serve, name="windlass", daemon=True)
        self._thread.start()

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        """What `coro` returns or raises; if this wait is interrupted, it is canceled."""
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
        """Stop the loop and wait for its thread."""
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
    """A coroutine that one thread has another one run.

    `asyncio.run_coroutine_threadsafe` does the same with two futures, and takes half as
    long again, which a program that submits a job has to wait for.
    """

    __slots__ = ("_coro", "_loop", "_task", "ended")

    def __init__(self, coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._coro = coro
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self.ended = threading.Lock()  # held until the end
        self.ended.acquire()

    def begin(self) -> None:
        """In the loop: start it."""
        self._task = self._loop.create_task(self._coro)
        self._task.add_done_callback(lambda _: self.ended.release())

    def result(self) -> T:
        """What it returned or raised, once it has ended."""
        assert self._task is not None
        return self._task.result()

    def cancel(self) -> None:
        """In the loop: nobody waits any more."""
        if self._task is not None:
            self._task.cancel()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
