"""Costs: they add up to the machine's time, whoever looks how often."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.pools.costs import Held, charges, cost_micros
from windlass.domain.pools.pools import HOUR_MS, CostRow, Pool, parse_pool
from windlass.domain.values.quantities import month_of, next_month, parse_moment

POOL = parse_pool({"name": "p", "hourly_price": "0.36"})
BEGIN = parse_moment("2026-11-15T12:00:00Z", "t")
A, B = ("team", "live"), ("team", "batch")


def by_payer(rows: Iterable[CostRow]) -> dict[tuple[str, str], tuple[int, int]]:
    return {(row.namespace, row.queue): (row.ms, row.micros) for row in rows}


def test_money_is_time_by_the_price_of_an_hour() -> None:
    assert cost_micros(POOL, HOUR_MS) == 360_000
    assert cost_micros(POOL, 1_000) == 100


def test_each_job_pays_for_its_time_and_the_rest_is_idle() -> None:
    held = [Held(BEGIN - 500, BEGIN + 1_000, A), Held(BEGIN + 1_500, BEGIN + 2_000, B)]
    found = by_payer(charges(POOL, BEGIN, BEGIN + 10_000, held))
    assert found == {A: (1_000, 100), B: (500, 50), ("", ""): (8_500, 850)}


def test_jobs_at_the_same_time_share_it() -> None:
    """Alone for 2 s, three of them for 3 s, then alone again for 1 s."""
    held = [Held(0, 6_000, A), Held(2_000, 5_000, B), Held(2_000, 5_000, B)]
    found = by_payer(charges(POOL, 0, 6_000, held))
    assert found == {A: (4_000, 400), B: (2_000, 200)}


def test_months_are_told_apart() -> None:
    end = next_month(BEGIN)
    assert (month_of(end - 1), month_of(end)) == (202611, 202612)
    assert month_of(next_month(end)) == 202701
    rows = charges(POOL, end - 1_000, end + 500, [Held(end - 200, end + 100, A)])
    assert [(row.month, row.namespace, row.ms) for row in rows] == [
        (202611, "", 800), (202611, "team", 200), (202612, "", 400), (202612, "team", 100),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(-50, 500), st.integers(0, 300), st.sampled_from([A, B])), max_size=12
    ),
    st.lists(st.integers(0, 400), max_size=8),
    st.integers(0, 10**9),
)  # fmt: skip
def test_it_adds_up_however_often_one_looks(
    jobs: list[tuple[int, int, tuple[str, str]]], looks: list[int], price: int
) -> None:
    """Time and money are those of the machine; each payer's differ by rounding alone."""
    pool = Pool(name="p", hourly_price=price)
    held = [Held(BEGIN + since, BEGIN + since + ms, payer) for since, ms, payer in jobs]
    moments = sorted({BEGIN, *(BEGIN + look for look in looks), BEGIN + 400})
    once = charges(pool, BEGIN, BEGIN + 400, held)
    often = [row for since, until in pairwise(moments) for row in charges(pool, since, until, held)]
    for rows in (once, often):
        assert sum(row.ms for row in rows) == 400
        paid = cost_micros(pool, BEGIN + 400) - cost_micros(pool, BEGIN)
        assert sum(row.micros for row in rows) == paid
        assert all(row.ms >= 0 and row.micros >= 0 for row in rows)
    sums = Counter[tuple[str, str]]()
    for row in often:
        sums[row.namespace, row.queue] += row.ms
    for who, (ms, _) in by_payer(once).items():
        assert abs(sums[who] - ms) <= len(moments)
