"""Draws numbers as a line of small bars."""

from collections.abc import Sequence
from typing import Final

BARS: Final = "▁▂▃▄▅▆▇█"
WIDEST: Final = 30
NOTHING: Final = " "


def sparkline(values: Sequence[float | None], width: int = WIDEST) -> str:
    """Returns one bar per value, the last ones if there are too many; None is a gap.

    The lowest bar is 0, so that two lines can be compared with each other.
    """
    shown = values[-width:]
    largest = max((value for value in shown if value is not None), default=0.0)
    return "".join(NOTHING if value is None else _bar(value, largest) for value in shown)


def _bar(value: float, largest: float) -> str:
    if largest <= 0 or value <= 0:
        return BARS[0]
    return BARS[min(int(value / largest * (len(BARS) - 1) + 0.5), len(BARS) - 1)]
