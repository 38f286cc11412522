"""Rates: never more starts in any stretch of time, and none kept back without need."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.shapes import Rate, opens_at, read_starts, room_in, write_starts


@given(st.integers(1, 5), st.integers(1, 50), st.lists(st.integers(0, 20), max_size=60))
def test_no_stretch_holds_more_than_allowed_and_the_rest_is_used(
    most: int, per_ms: int, steps: list[int]
) -> None:
    rate = Rate("k", most, per_ms)
    starts: list[int] = []
    now = 1_000
    for step in steps:
        now += step
        room = room_in(rate, starts, now)
        assert (room > 0) == (opens_at(rate, starts) <= now)
        if room:
            starts.append(now)
            starts = read_starts(write_starts(starts, most))
        window = [at for at in starts if now - per_ms < at <= now]
        assert len(window) <= most
        if not room:
            assert len(window) == most


@given(st.integers(1, 3), st.integers(1, 30), st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_the_whole_history_keeps_to_the_rate(most: int, per_ms: int, steps: list[int]) -> None:
    rate = Rate("k", most, per_ms)
    kept: list[int] = []
    history: list[int] = []
    now = 0
    for step in steps:
        now += step
        while room_in(rate, kept, now):
            kept = read_starts(write_starts([*kept, now], most))
            history.append(now)
    for first in history:
        assert sum(first <= at < first + per_ms for at in history) <= most
