"""When rates let jobs start again: the workers that wait for them are woken then."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from windlass.engine.claim.alarm import Alarm


class Reopening:
    """Calls `ring` for each shape once its time has come."""

    def __init__(
        self,
        now: Callable[[], Awaitable[int]],
        ring: Callable[[int], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._ring = ring
        self._spawn = spawn
        self._times: dict[int, int] = {}  # by shape
        self._alarm = Alarm(now, self._go_off)

    def set(self, times: Mapping[int, int]) -> None:
        """Remember the store's time at which each of these shapes opens."""
        self._times.update(times)
        self._set_alarm()

    def close(self) -> None:
        """Never ring again."""
        self._times.clear()
        self._alarm.close()

    def _set_alarm(self) -> None:
        at = min(self._times.values(), default=0)
        if not self._alarm.is_set_before(at):
            self._spawn(self._alarm.set(at))

    def _go_off(self) -> None:
        first = min(self._times.values(), default=0)
        for shape in [shape for shape, at in self._times.items() if at <= first]:
            del self._times[shape]
            self._ring(shape)
        self._set_alarm()
