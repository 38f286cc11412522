"""Rates: limits exactly how many jobs with a key may start within any period.

We remember the newest starts one by one. A token bucket would let through twice as many around the
end of a window, or none at once.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput

MAX_STARTS: Final = 1_000  # remembered for one key
MAX_MS: Final = 366 * 86_400_000


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `max` jobs with this key start within any `per_ms`, per namespace."""

    key: str
    max: int
    per_ms: int


def check_rate(rate: Rate, field: str) -> None:
    """Raises `InvalidInput` for impossible numbers. The key is checked as a name."""
    if not _is_whole(rate.max) or not 1 <= rate.max <= MAX_STARTS:
        expected = f"an integer from 1 to {MAX_STARTS}; for more, use a shorter period"
        raise InvalidInput(f"{field}.max", expected, rate.max)
    if not _is_whole(rate.per_ms) or not 1 <= rate.per_ms <= MAX_MS:
        raise InvalidInput(f"{field}.per", "a duration from 1ms to 366d", rate.per_ms)


def room_in(rate: Rate, starts: Sequence[int], now: int) -> int:
    """Returns how many may start now, given the earlier starts in ascending order."""
    return max(0, rate.max - (len(starts) - bisect_right(starts, now - rate.per_ms)))


def opens_at(rate: Rate, starts: Sequence[int]) -> int:
    """Returns when the next job may start; 0 if now."""
    return starts[-rate.max] + rate.per_ms if len(starts) >= rate.max else 0


def read_starts(text: str) -> list[int]:
    """Parses stored starts."""
    return msgspec.json.decode(text, type=list[int])


def write_starts(starts: Sequence[int], keep: int) -> str:
    """Formats the newest `keep` starts for storing."""
    return msgspec.json.encode(starts[-keep:] if keep else []).decode()


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
