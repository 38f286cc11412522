"""Histograms: whatever was measured is told back, almost, from a bounded number of counts."""

import math

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.rows.statistics import (
    Histogram,
    Measure,
    as_histogram,
    as_row,
    gather,
    merge,
    summarise,
)

VALUES = st.lists(st.integers(0, 2**50), max_size=60)
OFF = 2 ** (1 / 8)  # one bucket


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
    assert (found.count, found.total) == (len(values), sum(values))
    assert (found.low, found.high) == (min(values), max(values))
    assert found.mean == sum(values) / len(values)


@given(VALUES)
def test_a_row_holds_the_histogram(values: list[int]) -> None:
    assert as_histogram(as_row(1, Measure.RUN_MS, gather(values))) == gather(values)


def test_however_much_is_measured_the_histogram_stays_small() -> None:
    found = gather(2**n + k for n in range(60) for k in range(0, 2**n, max(1, 2**n // 40)))
    assert found.count > 2_000
    assert len(found.buckets) < 500


def test_before_the_first_value_everything_is_nothing() -> None:
    none = Histogram()
    assert (none.mean, none.quantile(0.5), gather([])) == (0.0, 0, none)
    assert merge(none, gather([5])) == merge(gather([5]), none) == gather([5])


def test_a_clock_that_was_set_back_counts_as_nothing() -> None:
    assert gather([-5, 5]).low == 0


def test_memory_is_told_only_where_it_was_measured() -> None:
    runs = [as_row(shape, Measure.RUN_MS, gather([100, 200, 300])) for shape in (1, 2)]
    memory = as_row(2, Measure.PEAK_MEMORY, gather([1_000, 9_000]))
    told = summarise([*runs, memory])
    assert (told[1].peak_memory, told[2].peak_memory) == (None, 9_000)
    assert told[1].mean_ms == 200
