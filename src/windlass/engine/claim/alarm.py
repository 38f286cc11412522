"""A timer in the store's time, so that a backoff of five seconds does not wait for a loop."""

import asyncio
from collections.abc import Awaitable, Callable


class Alarm:
    """Rings once, at the earliest time that was set."""

    def __init__(self, now: Callable[[], Awaitable[int]], ring: Callable[[], None]) -> None:
        self._now = now
        self._ring = ring
        self._at: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def set(self, at: int) -> None:
        """Rings at the store's time `at`, unless it rings earlier."""
        if self.is_set_before(at):
            return
        self._cancel()
        self._at = at
        try:
            now = await self._now()
        except BaseException:
            if self._at == at:
                self._at = None  # another call may set it; the loops check anyway
            raise
        if self._at == at and not self._closed:
            delay = max(0, at - now) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._go_off)

    def is_set_before(self, at: int) -> bool:
        """Returns whether setting it to `at` would change nothing."""
        return self._closed or (self._at is not None and self._at <= at)

    def close(self) -> None:
        """Cancels the timer for good."""
        self._closed = True
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_off(self) -> None:
        self._at = None
        self._timer = None
        self._ring()
