"""Histograms: whatever was measured is told back, almost, from a bounded number of counts."""

import math

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.rows.statistics import (
    HALF_LIFE_MS,
    MAX_WEIGHT,
    Histogram,
    Measure,
    WorkKind,
    as_histogram,
    as_row,
    fade,
    gather,
    merge,
    summarise,
)

VALUES = st.lists(st.integers(0, 2**50), max_size=60)
OFF = 2 ** (1 / 8)  # one bucket
KINDS = [WorkKind("default", "default", name) for name in ("one", "two")]


@given(VALUES, VALUES, VALUES)
def test_parts_add_up_to_the_whole_in_any_order(a: list[int], b: list[int], c: list[int]) -> None:
    whole = gather([*a, *b, *c])
    assert merge(merge(gather(a), gather(b)), gather(c)) == whole
    assert merge(gather(c), merge(gather(b), gather(a))) == whole


@given(VALUES.filter(bool), st.floats(0.01, 1))
def test_a_quantile_is_at_most_one_bucket_off(values: list[int], share: float) -> None:
    exact = sorted(values)[math.ceil(share * len(values)) - 1]
    told = gather(values).quantile(share)
    assert min(values) <= told <= max(values)
    assert told <= (exact + 1) * OFF
    assert told >= exact / OFF - 1


@given(VALUES.filter(bool))
def test_sums_and_bounds_are_exact(values: list[int]) -> None:
    found = gather(values)
    assert (found.seen, found.weight, found.total) == (len(values), len(values), sum(values))
    assert (found.low, found.high) == (min(values), max(values))
    assert found.mean == sum(values) / len(values)


@given(VALUES)
def test_a_row_holds_the_histogram(values: list[int]) -> None:
    assert as_histogram(as_row(KINDS[0], Measure.RUN_MS, gather(values), 5)) == gather(values)


def test_however_much_is_measured_the_histogram_stays_small() -> None:
    found = gather(2**n + k for n in range(60) for k in range(0, 2**n, max(1, 2**n // 40)))
    assert found.seen > 2_000
    assert len(found.buckets) < 500


def test_before_the_first_value_everything_is_nothing() -> None:
    none = Histogram()
    assert (none.mean, none.quantile(0.5), gather([])) == (0.0, 0, none)
    assert merge(none, gather([5])) == merge(gather([5]), none) == gather([5])


def test_a_clock_that_was_set_back_counts_as_nothing() -> None:
    assert gather([-5, 5]).low == 0


def test_memory_is_told_only_where_it_was_measured() -> None:
    runs = [as_row(kind, Measure.RUN_MS, gather([100, 200, 300]), 5) for kind in KINDS]
    memory = as_row(KINDS[1], Measure.PEAK_MEMORY, gather([1_000, 9_000]), 5)
    told = summarise([*runs, memory])
    assert (told[KINDS[0]].peak_memory, told[KINDS[1]].peak_memory) == (None, 9_000)
    assert (told[KINDS[0]].mean_ms, told[KINDS[0]].kind) == (200, "one")


def test_values_lose_half_their_weight_in_a_day() -> None:
    old = gather([1_000] * 40)
    faded = fade(old, HALF_LIFE_MS)
    assert (faded.weight, faded.mean, faded.seen) == (20, 1_000, 40)
    both = merge(faded, gather([4_000] * 20))
    assert (both.mean, both.seen) == (2_500, 60)


def test_a_long_past_weighs_no_more_than_some_new_values() -> None:
    known = gather([60_000] * 1_000_000)
    for _ in range(5):
        known = merge(fade(known, 0), gather([1_000] * 200))
    assert known.quantile(0.5) < 1_100, "after 1,000 runs it is known that they are short now"
    assert known.weight <= MAX_WEIGHT + 200


def test_what_has_faded_is_forgotten_with_its_bounds() -> None:
    known = merge(fade(gather([60_000]), 5 * HALF_LIFE_MS), gather([1_000] * 8))
    assert known.high <= 60_000 * OFF
    later = fade(known, HALF_LIFE_MS)
    assert later.high == 1_000
    assert fade(gather([5]), 100 * HALF_LIFE_MS) == Histogram(seen=1)


@given(VALUES.filter(bool), st.integers(0, 10 * HALF_LIFE_MS))
def test_fading_keeps_the_mean_about_where_it_was(values: list[int], elapsed: int) -> None:
    known, faded = gather(values), fade(gather(values), elapsed)
    assert faded.weight <= known.weight
    if faded.weight:
        assert min(values) / OFF - 1 <= faded.low <= faded.high <= (max(values) + 1) * OFF
