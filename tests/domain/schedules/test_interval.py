"""Slots of intervals: they lie on a grid from the anchor, wherever the search begins."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.schedules import MIN_EVERY_MS, Every
from windlass.domain.values.errors import InvalidInput

ANCHOR = 1_700_000_000_123
INTERVALS = st.integers(MIN_EVERY_MS, 400 * 86_400_000)
MOMENTS = st.integers(0, 2 * ANCHOR)


@given(INTERVALS, MOMENTS)
def test_the_slot_after_a_moment_is_the_first_one_on_the_grid(interval: int, moment: int) -> None:
    slot = Every(interval, ANCHOR).after(moment)
    assert slot > moment
    assert slot > ANCHOR
    assert (slot - ANCHOR) % interval == 0
    assert slot - interval <= max(moment, ANCHOR)


@given(INTERVALS, MOMENTS, st.integers(0, 50), st.integers(1, 20))
def test_the_newest_are_the_last_of_the_slots_between(
    interval: int, after: int, periods: int, count: int
) -> None:
    every = Every(interval, ANCHOR)
    until = max(after, ANCHOR) + periods * interval + interval // 3
    came = [slot for slot in islice(every.slots(after), periods + 2) if slot <= until]
    assert every.newest(after, until, count) == came[-count:]


def test_nothing_came_before_the_first_slot() -> None:
    assert Every(10_000, ANCHOR).newest(0, ANCHOR + 9_999, 5) == []


def test_an_interval_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidInput, match="expected every to be at least 1s, got 999ms"):
        Every(999, ANCHOR)
