"""Forecasts: what they say in plain cases, and what holds for all of them."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.explain.forecast import (
    Line,
    Span,
    forecast,
    mixture,
    remaining,
    suggestions,
    wait_in,
)
from windlass.domain.rows.statistics import Measure, Summary, WorkKind, as_row, gather, summarise

MINUTE = 60_000
KIND = WorkKind("default", "default", "echo")
GIB = 2**30


def known(*values: int) -> Summary:
    return summarise([as_row(KIND, Measure.RUN_MS, gather(values), 0)])[KIND]


SUMMARIES = st.lists(st.integers(1, 2**40), min_size=1, max_size=20).map(lambda v: known(*v))
LINES = st.builds(
    Line,
    slots=st.integers(0, 50),
    free=st.integers(0, 50),
    ahead=st.integers(0, 10_000),
    mix=st.none() | SUMMARIES,
)


def test_a_job_with_a_free_slot_starts_at_once() -> None:
    assert wait_in(Line(slots=4, free=2, ahead=1)) == Span(0, 0, 0)


def test_nothing_is_told_without_workers_or_experience() -> None:
    assert wait_in(Line(slots=0, free=0, ahead=0, mix=known(5))) is None
    assert wait_in(Line(slots=1, free=0, ahead=0)) is None
    assert forecast(Line(slots=0, free=0, ahead=0), known(5)).start is None
    assert remaining(None, 5).end is None


@given(st.integers(1, 20), st.integers(0, 200), st.integers(1_000, 10 * MINUTE))
def test_equal_jobs_start_about_when_their_turn_comes(slots: int, ahead: int, run: int) -> None:
    """All slots have just begun; jobs of one length go through them in rounds."""
    told = wait_in(Line(slots, 0, ahead, known(run)))
    turn = (ahead // slots + 1) * run
    assert told is not None
    assert abs(told.likely - turn) <= run
    assert told.low <= turn + run
    assert told.high >= turn - run


@given(LINES, SUMMARIES, st.integers(0, 2**40))
def test_ranges_are_in_order(line: Line, own: Summary, not_before: int) -> None:
    told = forecast(line, own, not_before)
    for span in (told.start, told.end, remaining(own, not_before).end):
        if span is not None:
            assert 0 <= span.low <= span.likely <= span.high
    if told.start is not None and told.end is not None:
        assert told.start.low >= not_before
        assert told.start.likely <= told.end.likely


@given(LINES)
def test_more_ahead_is_never_sooner(line: Line) -> None:
    less = wait_in(line)
    more = wait_in(Line(line.slots, line.free, line.ahead + 1, line.mix))
    if less is not None and more is not None:
        assert less.likely <= more.likely


def test_a_mixture_weighs_by_number() -> None:
    told = mixture([(3, known(1_000)), (1, known(5_000)), (0, known(9))])
    assert told is not None
    assert told.mean_ms == 2_000
    assert mixture([]) is None


def test_a_running_job_ends_when_such_jobs_do() -> None:
    told = remaining(known(*[10 * MINUTE] * 9), 4 * MINUTE).end
    assert told is not None
    assert abs(told.likely - 6 * MINUTE) < MINUTE
    late = remaining(known(MINUTE), 5 * MINUTE)
    assert (late.end, late.overdue_ms) == (None, 4 * MINUTE)


def measured(peak: int, count: int = 12) -> Summary:
    return Summary(count, 1.0, 1, 1, 1, peak, peak)


def test_what_asks_for_far_too_much_is_told_what_would_do() -> None:
    (said,) = suggestions([("cpus", 1), ("memory", 16 * GIB)], measured(300 * 2**20))
    assert said == (
        "asks for 16 GiB of memory, 12 runs used at most 300 MiB: ask for memory=384MiB"
    )
    (said,) = suggestions([("memory", GIB)], measured(2 * GIB))
    assert said == "asks for 1 GiB of memory, 12 runs used at most 2 GiB: ask for memory=2.5GiB"


def test_nothing_is_suggested_where_it_is_about_right_or_unknown() -> None:
    assert suggestions([("memory", GIB)], measured(GIB // 2)) == []
    assert suggestions([("memory", 64 * 2**20)], measured(2**20)) == []
    assert suggestions([("memory", 16 * GIB)], measured(1, count=2)) == []
    assert suggestions([("memory", 16 * GIB)], None) == []
    assert suggestions([("cpus", 9)], measured(1)) == []
    assert suggestions([("memory", 16 * GIB)], known(5)) == []
