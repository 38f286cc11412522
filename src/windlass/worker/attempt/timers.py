"""The timers of one attempt (timeout, idle timeout, stop), and work that a stop interrupts."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from windlass.domain.lifecycle.timeouts import NEAR
from windlass.domain.values.quantities import readable_duration
from windlass.worker.keeper.kept_process import Fenced

COARSE_MS = 10_000  # longer timeouts are checked now and then, without a timer each
DEFAULT = ": the job has no timeout of its own (--timeout sets one)"
BY_MEDIA = ", by the length of its media (--timeout overrides it)"


class Timers:
    """Calls `late` with a message once the attempt has run, or been idle, for too long.

    Calls `near` with a message when most of a long timeout has passed. `why` says in messages where
    the timeout comes from, unless it is the job's own.
    """

    __slots__ = (
        "_due_at", "_idle_ms", "_idle_timer", "_late", "_limit", "_near", "_near_at", "_seen_at",
        "_timer", "_why", "timeout_ms",
    )  # fmt: skip

    def __init__(
        self, timeout_ms: int | None, idle_ms: int | None, late: Callable[[str], None],
        near: Callable[[str], None] | None = None, why: str = "",
    ) -> None:  # fmt: skip
        self.timeout_ms = timeout_ms
        self._near = near or _ignore
        self._near_at = math.inf
        self._why = why
        self._idle_ms = idle_ms
        self._late = late
        self._due_at = math.inf
        self._seen_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._limit: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Starts counting."""
        loop = asyncio.get_running_loop()
        timeout = self.timeout_ms
        if timeout is not None and timeout > COARSE_MS:
            self._due_at = loop.time() + timeout / 1000
            self._near_at = loop.time() + NEAR * timeout / 1000
        elif timeout is not None:
            self._timer = loop.call_later(timeout / 1000, self._time_out)
        if self._idle_ms is not None:
            self._seen_at = loop.time()
            self._look_idle()

    def check(self, now: float) -> None:
        """Times out if a long timeout has passed; warns if most of it has."""
        if now >= self._due_at:
            self._time_out()
        elif now >= self._near_at and self.timeout_ms is not None:
            self._near_at, seen_at = math.inf, self._seen_at
            left = readable_duration(round((1 - NEAR) * self.timeout_ms))
            timeout = readable_duration(self.timeout_ms)
            self._near(f"it will be stopped in {left}, when its timeout of {timeout} has passed")
            self._seen_at = seen_at  # The warning is not a sign of life.

    def change_timeout(self, timeout_ms: int | None) -> None:
        """Replaces the timeout, counted from the start; without a timeout, it stays without."""
        due_at = self._due_at if self._timer is None else self._timer.when()
        if timeout_ms is None or self.timeout_ms is None or due_at == math.inf:
            return
        if self._timer is not None:
            self._timer.cancel()
        started_at = due_at - self.timeout_ms / 1000
        self.timeout_ms, self._due_at, self._why = timeout_ms, math.inf, BY_MEDIA
        self._near_at = math.inf
        if timeout_ms > COARSE_MS:
            self._near_at = started_at + NEAR * timeout_ms / 1000
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(started_at + timeout_ms / 1000, self._time_out)

    def note_activity(self) -> None:
        """Resets the idle timeout."""
        if self._idle_timer is not None:
            self._seen_at = asyncio.get_running_loop().time()

    def limit_stop(self, seconds: float, give_up: Callable[[], None]) -> None:
        """Calls `give_up` if the attempt has not ended by then; the first limit counts."""
        if self._limit is None:
            self._limit = asyncio.get_running_loop().call_later(seconds, give_up)

    def cancel(self) -> None:
        """Cancels all timers and drops the reference to the attempt."""
        self._late = self._near = _ignore
        for timer in (self._timer, self._idle_timer, self._limit):
            if timer is not None:
                timer.cancel()

    def _time_out(self) -> None:
        if self.timeout_ms is not None:
            self._late(f"Timed out after {readable_duration(self.timeout_ms)}{self._why}")

    def _look_idle(self) -> None:
        if self._idle_ms is None:
            return
        loop = asyncio.get_running_loop()
        due = self._seen_at + self._idle_ms / 1000
        if loop.time() >= due:
            self._late(f"No sign of life for {readable_duration(self._idle_ms)}")
        else:
            self._idle_timer = loop.call_at(due, self._look_idle)


def _ignore(message: str) -> None:
    """Does nothing: the attempt has ended."""


Done = TypeVar("Done")


async def unless_stopped(work: Coroutine[Any, Any, Done], stopping: asyncio.Event) -> Done:
    """Waits for the work; raises `Fenced` if the attempt is stopped before it ends."""
    loop = asyncio.get_running_loop()
    working = loop.create_task(work)
    stopped = loop.create_task(stopping.wait())
    try:
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopped.cancel()
    if stopping.is_set():
        await asyncio.wait((working,))
        raise Fenced("the attempt is being stopped")
    return working.result()
