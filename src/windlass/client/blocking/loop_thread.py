"""An event loop in its own thread, so that any blocking code can use a client.

Any number of threads may call it at once, also threads that run an event loop themselves. The
thread starts with the first call. Nothing else in Windlass starts threads for its own work.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from windlass.domain.values.errors import Conflict
from windlass.ports.loop_time import OUTSIDE

T = TypeVar("T")

EXIT_S: Final = 2.0  # how long the end of a program waits for connections to be closed

Loop = asyncio.AbstractEventLoop
Closing = Callable[[], Coroutine[Any, Any, None]]


class LoopThread:
    """Runs coroutines for other threads until it is closed.

    `closing` runs before the loop ends: at the end of the program, or when nobody uses it any more.
    After a fork, the child starts its own thread. With `forks` False it does not: the loop's work
    belongs to the parent.
    """

    def __init__(
        self,
        new_loop: Callable[[], Loop] = asyncio.new_event_loop,
        *,
        closing: Closing | None = None,
        forks: bool = True,
    ) -> None:
        self._new_loop = new_loop
        self._closing = closing
        self._forks = forks
        # Held while a call is handed to the loop, so that none comes after its end. One thread
        # may take it twice: in a signal handler, or when a client is found to be garbage.
        self._lock = threading.RLock()
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._refusal: Conflict | None = None  # why it accepts no more calls
        self._closer: int | None = None  # the thread that closes it, whose calls it still takes
        _ALL.add(self)

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Returns or raises what `coro` does; cancels it if the wait is interrupted."""
        return self._run(coro, None)

    def _run(self, coro: Coroutine[Any, Any, T], context: Context | None) -> T:
        with self._lock:
            loop = self._loop_for(coro)
            call = _Call(coro, loop, context)
            loop.call_soon_threadsafe(call.begin)
        try:
            call.ended.acquire()
        except BaseException:
            call.give_up()
            raise
        return call.result()

    def run_from_here(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Does the same, in the calling thread until `coro` asks for the loop: see `to_loop`.

        Two threads that wake each other cost more than most calls.
        """
        ready = self._loop is not None and self._refusal is None
        if not ready or threading.current_thread() is self._thread:
            return self.run(coro)
        context = copy_context()
        context.run(OUTSIDE.set, True)
        try:
            context.run(coro.send, None)
        except StopIteration as ended:
            value: T = ended.value
            return value
        context.run(OUTSIDE.set, False)
        return self._run(coro, context)

    def start(self, coro: Coroutine[Any, Any, T], /) -> "Future[T]":
        """Starts a coroutine in the loop, without waiting for it."""
        with self._lock:
            return asyncio.run_coroutine_threadsafe(coro, self._loop_for(coro))

    async def run_async(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Does the same for code that runs in another event loop."""
        return await asyncio.wrap_future(self.start(coro))

    def begin_close(self) -> bool:
        """Refuses the calls of other threads; returns whether there may be something to close."""
        with self._lock:
            if self._loop is None or self._refusal is not None:
                return False
            self._refusal = Conflict("client_closed", "this client was closed")
            self._closer = threading.get_ident()
            return True

    def close(self) -> None:
        """Stops the loop and waits for its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            if self._refusal is None:
                self._refusal = Conflict("client_closed", "this client was closed")
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():
                thread.join()

    def end(self, wait: float = 0.0) -> None:
        """Closes what the loop runs, then stops it; waits at most `seconds` for that."""
        with self._lock:
            loop, thread, closing = self._loop, self._thread, self._closing
            if loop is None or thread is None or closing is None:
                return
            self._refusal = Conflict("client_closed", "the program is ending")
            self._closer = None

        async def finish() -> None:
            try:
                await closing()
            finally:
                loop.stop()

        loop.call_soon_threadsafe(lambda: loop.create_task(finish()))
        if wait and thread is not threading.current_thread():
            thread.join(wait)

    def forked(self) -> None:
        """Forgets the parent's thread, in the child of a fork."""
        self._lock = threading.RLock()
        if self._loop is None:
            return
        # They share sockets and the poller with the parent, so nothing may touch them again.
        _INHERITED.append((self._loop, self._thread))
        self._loop = self._thread = None
        if not self._forks:
            self._refusal = Conflict(
                "forked_client",
                "this embedded client was opened before the process forked: open one in "
                "each process",
            )

    def _loop_for(self, coro: Coroutine[Any, Any, Any]) -> Loop:
        """Returns the loop that will run a call; closes the call if it is refused."""
        loop = self._loop
        try:
            if self._refusal is not None and threading.get_ident() != self._closer:
                raise self._refusal
            if loop is None:
                return self._start()
            if threading.current_thread() is self._thread:
                raise Conflict(
                    "own_loop",
                    "a client was called from its own event loop: use `AsyncClient` there",
                )
        except BaseException:
            coro.close()
            raise
        return loop

    def _start(self) -> Loop:
        if self._refusal is not None:
            raise self._refusal
        loop = self._new_loop()
        # A daemon, so that a program which forgot to close its client can still end.
        self._thread = threading.Thread(target=_serve, args=(loop,), name="windlass", daemon=True)
        self._thread.start()
        self._loop = loop
        return loop


_ALL: Final[WeakSet[LoopThread]] = WeakSet()
_INHERITED: Final[list[object]] = []


def _after_fork() -> None:
    for thread in list(_ALL):
        thread.forked()


def _at_exit() -> None:
    for thread in list(_ALL):
        thread.end(EXIT_S)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


class _Call(Generic[T]):
    """A coroutine that one thread runs for another.

    `asyncio.run_coroutine_threadsafe` does the same with two futures and takes 1.5 times as
    long, which every submission would wait for.
    """

    __slots__ = ("_context", "_coro", "_loop", "_task", "ended")

    def __init__(self, coro: Coroutine[Any, Any, T], loop: Loop, context: Context | None) -> None:
        self._context = context  # in which it has begun
        self._coro = coro
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self.ended = threading.Lock()  # held until the end
        self.ended.acquire()

    def begin(self) -> None:
        """Starts it; called in the loop."""
        self._task = self._loop.create_task(self._coro, context=self._context)
        self._task.add_done_callback(lambda _: self.ended.release())

    def result(self) -> T:
        """Returns or raises its outcome, after it has ended."""
        assert self._task is not None
        if self._task.cancelled():
            raise Conflict("client_closed", "this client was closed during the call")
        return self._task.result()

    def give_up(self) -> None:
        """Cancels it, since nobody waits for it any more."""
        with suppress(RuntimeError):  # The loop has ended, and with it the call.
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _serve(loop: Loop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        _cancel_all(loop)
        # It closes streams that were left open, and lets go of calls that ended at the last moment.
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _cancel_all(loop: Loop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
