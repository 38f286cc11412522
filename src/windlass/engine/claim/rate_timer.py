"""Wakes waiting workers when a rate limit lets jobs start again."""

from collections.abc import Awaitable, Callable, Mapping

from windlass.engine.claim.alarm import Alarm
from windlass.engine.transaction.background import BackgroundTasks


class RateTimer:
    """Calls `ring` for each shape when it opens."""

    def __init__(
        self,
        now: Callable[[], Awaitable[int]],
        ring: Callable[[int], None],
        background: BackgroundTasks,
    ) -> None:
        self._ring = ring
        self._background = background
        self._times: dict[int, int] = {}  # by shape
        self._alarm = Alarm(now, self._go_off)

    def set(self, times: Mapping[int, int]) -> None:
        """Remembers the store's time at which each of these shapes opens."""
        self._times.update(times)
        self._set_alarm()

    def close(self) -> None:
        """Stops the timer for good."""
        self._times.clear()
        self._alarm.close()

    def _set_alarm(self) -> None:
        at = min(self._times.values(), default=None)
        if at is not None and not self._alarm.is_set_before(at):
            self._background.start(self._alarm.set(at))

    def _go_off(self) -> None:
        if not self._times:
            return
        first = min(self._times.values())
        for shape in [shape for shape, at in self._times.items() if at <= first]:
            del self._times[shape]
            self._ring(shape)
        self._set_alarm()
