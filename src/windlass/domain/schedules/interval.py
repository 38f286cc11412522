"""Computes the slots of an interval such as every 90 minutes, as milliseconds since 1970."""

from collections.abc import Iterator
from itertools import count as counting
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_duration

MIN_EVERY_MS: Final = 1_000


class Every:
    """The slots anchor + k × interval for k ≥ 1: a late or long run does not move the next one."""

    def __init__(self, interval_ms: int, anchor: int) -> None:
        if interval_ms < MIN_EVERY_MS:
            least = format_duration(MIN_EVERY_MS)
            raise InvalidInput("every", f"at least {least}", format_duration(interval_ms))
        self._interval = interval_ms
        self._anchor = anchor

    def after(self, ms: int) -> int:
        """Returns the first slot after this time."""
        return self._anchor + self._interval * max(1, self._passed(ms) + 1)

    def slots(self, after: int) -> Iterator[int]:
        """Yields the slots after this time, in order."""
        return counting(self.after(after), self._interval)

    def newest(self, after: int, until: int, count: int) -> list[int]:
        """Returns the last `count` slots after `after` and not after `until`."""
        last = self._anchor + self._interval * self._passed(until)
        first = max(self.after(after), last - self._interval * (count - 1))
        return list(range(first, last + 1, self._interval))

    def _passed(self, ms: int) -> int:
        """Returns how many whole intervals lie between the anchor and this time."""
        return (ms - self._anchor) // self._interval
