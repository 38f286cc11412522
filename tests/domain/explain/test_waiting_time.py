"""Every moment of a job has one cause, and they add up to the whole."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.explain.waiting_time import (
    QUEUED_CAUSES,
    Cause,
    Interval,
    Span,
    pieces,
    spans_of,
    sums_of,
    while_true,
    without,
)
from windlass.domain.lifecycle.states import State

QUEUED = State.QUEUED.code
times = st.integers(0, 200)
intervals = st.lists(st.tuples(times, times).map(lambda pair: (min(pair), max(pair))), max_size=5)
states = st.sampled_from([state.code for state in State])


@given(
    moves=st.lists(st.tuples(times, states), max_size=8).map(sorted),
    held=st.dictionaries(st.sampled_from(QUEUED_CAUSES), intervals),
    needs_end=st.none() | times,
    now=st.integers(200, 300),
)
def test_the_parts_add_up_to_the_whole(
    moves: list[tuple[int, int]],
    held: dict[Cause, list[Interval]],
    needs_end: int | None,
    now: int,
) -> None:
    spans = spans_of(moves, 0, now)
    sums = sums_of(pieces(spans, held, needs_end))
    assert sum(sums.values()) == sum(span.end - span.start for span in spans)
    assert all(length > 0 for length in sums.values())


@given(moves=st.lists(st.tuples(times, states), min_size=1, max_size=8).map(sorted))
def test_spans_cover_all_of_the_time_once(moves: list[tuple[int, int]]) -> None:
    spans = spans_of(moves, 0, 300)
    assert all(a.end == b.start for a, b in pairwise(spans))
    if spans:
        assert spans[0].start == 0


@given(span=st.tuples(times, times).map(sorted), held=st.dictionaries(
    st.sampled_from(QUEUED_CAUSES), intervals))  # fmt: skip
def test_each_queued_moment_goes_to_the_first_cause_that_held(
    span: list[int], held: dict[Cause, list[Interval]]
) -> None:
    expected: dict[Cause, int] = {}
    for moment in range(*span):
        cause: Cause = next(
            (c for c in QUEUED_CAUSES if any(a <= moment < b for a, b in held.get(c, []))), "busy"
        )
        expected[cause] = expected.get(cause, 0) + 1
    assert sums_of(pieces([Span(span[0], span[1], QUEUED)], held)) == expected


def test_blocked_jobs_wait_for_an_operator_once_the_others_have_ended() -> None:
    blocked = Span(10, 50, State.BLOCKED.code)
    assert sums_of(pieces([blocked], {}, 30)) == {"dependencies": 20, "operator": 20}
    assert sums_of(pieces([blocked], {}, 5)) == {"operator": 40}
    assert sums_of(pieces([blocked], {}, None)) == {"dependencies": 40}


def test_holes_are_cut_out_of_pieces() -> None:
    assert without([(0, 10)], [(2, 4), (8, 20)]) == [(0, 2), (4, 8)]
    assert without([(0, 10)], [(0, 10)]) == []


def test_a_condition_that_still_holds_lasts_until_now() -> None:
    assert while_true([(1, True), (3, False), (5, True), (6, True)], 9) == [(1, 3), (5, 9)]
