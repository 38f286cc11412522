"""The order of the queue: one integer says what the score says, at any time."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lifecycle.rank import (
    AGING_OFF_INTERVAL_MS,
    LEVEL_LIMIT,
    OTHER,
    PRIORITY_NAMES,
    QUEUE_WEIGHTS,
    age_from_ms,
    checked_level,
    level,
    parse_priority,
    queue_weight,
    rank,
    score,
)
from windlass.domain.values.errors import InvalidInput, shorten

FIVE_MINUTES = 300_000
HOUR = 3_600_000

times = st.integers(0, 2**42)
levels = st.integers(-LEVEL_LIMIT, LEVEL_LIMIT)
intervals = st.integers(1, AGING_OFF_INTERVAL_MS)
# Close together, so that ties and near misses occur.
near_times = st.integers(1_700_000_000_000, 1_700_000_000_000 + 4 * FIVE_MINUTES)
near_levels = st.integers(-3, 3)


NO_PRIORITIES: list[object] = [
    *("", "urgent", "1.5", "--1", "+-1", "1e3", "٣", "9" * 5000),
    *(LEVEL_LIMIT + 1, -LEVEL_LIMIT - 1, 10**5000),
    *(True, None, 1.0),
]


def designs_score(level_: int, age_from: int, now: int, interval: int) -> Fraction:
    return level_ + Fraction(now - age_from, interval)


@given(near_times, near_levels, near_times, near_levels, times, st.sampled_from([1, 7, 300_000]))
def test_the_order_by_rank_is_the_order_by_score_at_any_time(
    age_a: int, level_a: int, age_b: int, level_b: int, now: int, interval: int
) -> None:
    rank_a, rank_b = rank(age_a, level_a, interval), rank(age_b, level_b, interval)
    score_a = designs_score(level_a, age_a, now, interval)
    score_b = designs_score(level_b, age_b, now, interval)
    assert (rank_a < rank_b) == (score_a > score_b)
    assert (rank_a == rank_b) == (score_a == score_b)


@given(times, levels, times, levels, times, intervals)
def test_the_shown_score_never_contradicts_the_rank(
    age_a: int, level_a: int, age_b: int, level_b: int, now: int, interval: int
) -> None:
    if rank(age_a, level_a, interval) < rank(age_b, level_b, interval):
        assert score(level_a, age_a, now, interval) >= score(level_b, age_b, now, interval)


@given(levels, times, times, intervals)
def test_the_shown_score_is_the_designs_formula(
    level_: int, age_from: int, now: int, interval: int
) -> None:
    assert score(level_, age_from, now, interval) == float(
        designs_score(level_, age_from, now, interval)
    )


@given(near_times, near_levels, near_times, near_levels, times, times)
def test_the_order_by_score_never_changes_with_time(
    age_a: int, level_a: int, age_b: int, level_b: int, now: int, later: int
) -> None:
    def ahead(at: int) -> bool:
        score_a = designs_score(level_a, age_a, at, FIVE_MINUTES)
        return score_a > designs_score(level_b, age_b, at, FIVE_MINUTES)

    assert ahead(now) == ahead(later)


@given(near_levels, times, st.integers(1, 2**40), st.sampled_from([0, 1, 300_000]))
def test_within_a_level_the_first_comes_first(
    level_: int, age_from: int, later: int, interval: int
) -> None:
    assert rank(age_from, level_, interval) < rank(age_from + later, level_, interval)
    assert rank(age_from, level_, interval) == rank(age_from, level_, interval)


def test_five_minutes_of_age_are_worth_one_level() -> None:
    now = 1_700_000_000_000
    old, young = now - FIVE_MINUTES, now
    assert rank(old, 50, FIVE_MINUTES) == rank(young, 51, FIVE_MINUTES)
    assert rank(old - 1, 50, FIVE_MINUTES) < rank(young, 51, FIVE_MINUTES)
    assert score(50, old, now, FIVE_MINUTES) == 51.0


@given(times, near_levels, times, near_levels)
def test_without_aging_a_level_is_never_overtaken(
    age_a: int, level_a: int, age_b: int, level_b: int
) -> None:
    if abs(age_a - age_b) < AGING_OFF_INTERVAL_MS and level_a > level_b:
        assert rank(age_a, level_a, 0) < rank(age_b, level_b, 0)
    assert rank(age_a, level_a, 0) == rank(age_a, level_a, AGING_OFF_INTERVAL_MS)
    assert score(level_a, age_a, 2**42, 0) == level_a


@given(times, levels, intervals | st.just(0))
def test_every_rank_fits_in_64_bits(age_from: int, level_: int, interval: int) -> None:
    assert -(2**63) <= rank(age_from, level_, interval) < 2**63


def test_a_low_job_in_batch_waits_its_turn_and_gets_it() -> None:
    start = 1_700_000_000_000
    starving = rank(start, level(QUEUE_WEIGHTS["batch"], -1, 0), FIVE_MINUTES)
    after_eight_hours = start + 8 * HOUR
    fresh_live = rank(after_eight_hours, level(QUEUE_WEIGHTS["live"], 1, 0), FIVE_MINUTES)
    assert starving < fresh_live
    assert starving > rank(start + 7 * HOUR, level(100, 1, 0), FIVE_MINUTES)


def test_queue_weights_and_names_are_the_designs() -> None:
    assert dict(QUEUE_WEIGHTS) == {"live": 100, "default": 50, "batch": 10}
    assert dict(PRIORITY_NAMES) == {"high": 1, "medium": 0, "low": -1}
    assert queue_weight("live") == 100
    assert queue_weight("batch") == 10
    assert queue_weight("gpu-farm") == OTHER == 50


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("high", 1),
        ("Medium", 0),
        (" LOW ", -1),
        ("7", 7),
        ("-3", -3),
        ("+2", 2),
        (12, 12),
        (LEVEL_LIMIT, LEVEL_LIMIT),
        (str(-LEVEL_LIMIT), -LEVEL_LIMIT),
    ],
)
def test_a_priority_has_a_name_or_a_number(value: object, number: int) -> None:
    assert parse_priority(value) == number


@pytest.mark.parametrize(
    "value",
    NO_PRIORITIES,
    ids=shorten,
)
def test_any_other_priority_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="expected priority to be high, medium, low or an"):
        parse_priority(value)


@given(st.integers(), st.integers(), st.integers())
def test_a_level_is_the_sum_held_within_the_limit(weight: int, base: int, adjustment: int) -> None:
    total = weight + base + adjustment
    assert level(weight, base, adjustment) == max(-LEVEL_LIMIT, min(LEVEL_LIMIT, total))
    if abs(total) <= LEVEL_LIMIT:
        assert checked_level(weight, base, adjustment) == total
    else:
        with pytest.raises(InvalidInput, match="expected priority to be within"):
            checked_level(weight, base, adjustment)


def test_age_counts_from_creation() -> None:
    assert age_from_ms(1_000, None, None) == 1_000
    assert age_from_ms(1_000, None, 2_000) == 1_000


def test_a_job_planned_for_later_starts_young() -> None:
    assert age_from_ms(1_000, 500_000, None) == 500_000
    assert age_from_ms(1_000, 500, None) == 1_000


def test_time_spent_blocked_counts_for_an_hour_at_most() -> None:
    assert age_from_ms(0, None, HOUR) == 0
    assert age_from_ms(0, None, HOUR + 1) == 1
    assert age_from_ms(0, 5 * HOUR, 5 * HOUR) == 5 * HOUR


@given(times, st.none() | times, st.none() | times)
def test_age_never_counts_from_before_creation(
    created_at: int, not_before: int | None, first_queued_at: int | None
) -> None:
    start = age_from_ms(created_at, not_before, first_queued_at)
    assert start == max(
        created_at,
        not_before or 0,
        (first_queued_at or 0) - HOUR,
    )
