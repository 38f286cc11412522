"""Attempts in lanes: none overlap, none are lost, few are drawn, and idle times are found."""

from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.domain.graphs.timeline import MAX_BARS, Run, TimelineGap, Window, lay_out

runs = st.builds(
    lambda job, lane, start, length, state: Run(job, 1, f"w{lane}", start, start + length, state),
    st.integers(1, 99),
    st.integers(0, 3),
    st.integers(1_000, 100_000),
    st.integers(0, 30_000),
    st.integers(1, 12),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(runs, max_size=60))
def test_lanes_hold_every_run_once_and_none_overlap(given_runs: list[Run]) -> None:
    found = lay_out(given_runs, Window(most=10_000))
    assert sum(bar.runs for lane in found.lanes for bar in lane.bars) == len(given_runs)
    for lane in found.lanes:
        ends = 0
        for bar in lane.bars:
            assert ends <= bar.start <= bar.end
            assert sum(bar.states.values()) == bar.runs
            ends = bar.end


@settings(max_examples=40, deadline=None)
@given(st.lists(runs, max_size=30))
def test_nothing_runs_in_a_gap(given_runs: list[Run]) -> None:
    for gap in lay_out(given_runs, Window()).gaps:
        start, end = gap.start, gap.end
        assert end - start > 1_000
        assert not any(run.start < end and run.end > start for run in given_runs)
        assert any(run.end == start for run in given_runs)
        assert any(run.start == end for run in given_runs)


def test_many_short_runs_become_few_bars_and_are_told_apart_in_a_window() -> None:
    many = [Run(n, 1, f"w{n % 20}", 10 * n, 10 * n + 5, 8) for n in range(1, 20_000)]
    found = lay_out(many, Window())
    assert sum(len(lane.bars) for lane in found.lanes) <= MAX_BARS
    assert sum(bar.runs for lane in found.lanes for bar in lane.bars) == len(many)
    close = lay_out(many, Window(start=50_000, end=51_000))
    assert all(bar.runs == 1 for lane in close.lanes for bar in lane.bars)
    assert sum(bar.runs for lane in close.lanes for bar in lane.bars) in range(100, 103)


def test_lanes_are_told_page_by_page() -> None:
    many = [Run(n, 1, f"w{n:03}", 0, 5, 8) for n in range(1, 300)]
    found = lay_out(many, Window(first=100, most=50))
    assert [lane.name for lane in found.lanes] == [f"w{n:03}" for n in range(101, 151)]
    assert (found.lanes_total, found.runs) == (299, 299)


def test_a_long_pause_is_a_gap_and_a_short_one_is_not() -> None:
    found = lay_out(
        [Run(1, 1, "a", 0, 10_000, 8), Run(2, 1, "b", 10_500, 20_000, 8),
         Run(3, 1, "a", 90_000, 100_000, 8)], Window(),
    )  # fmt: skip
    assert found.gaps == [TimelineGap(start=20_000, end=90_000)]
