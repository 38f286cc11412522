"""The longest chain by run time, how far a workflow is, and when it may end."""

from array import array
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.graphs.drawn import graph_of, graphs
from windlass.domain.explain.forecast import Span
from windlass.domain.graphs.critical import Chain, Times, estimates, longest_chain, progress
from windlass.domain.graphs.graph import Graph
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.statistics import Summary

DONE, RUNNING, WAITS = State.COMPLETED.code, State.RUNNING.code, State.BLOCKED.code
DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
KNOWN = Summary(count=9, mean_ms=1_000, p10_ms=500, p50_ms=1_000, p90_ms=3_000)


def _chain(graph: Graph, run_ms: list[int]) -> Chain:
    times = Times([DONE] * len(run_ms), [1] * len(run_ms), [1 + ms for ms in run_ms])
    return longest_chain(graph, estimates(times, [0] * len(run_ms), [None], 0))


def test_the_longest_chain_goes_through_the_job_that_took_longest() -> None:
    graph = graph_of(DIAMOND)
    assert _chain(graph, [10, 20, 30, 5]) == Chain([0, 2, 3], 45, Span(0, 0, 0))
    assert _chain(graph, [10, 40, 30, 5]).jobs == [0, 1, 3]
    assert _chain(graph, [0, 0, 0, 0]).jobs == [0, 1, 3]  # nobody knows: the most jobs
    assert _chain(graph_of({}), []) == Chain((), 0, Span(0, 0, 0))


@settings(max_examples=15, deadline=None)
@given(graphs(120), st.randoms(use_true_random=False))
def test_no_chain_takes_longer(graph: Graph, chance: Random) -> None:
    run_ms = [chance.randint(0, 1_000) for _ in range(len(graph))]
    found = _chain(graph, run_ms)
    ends = [0] * len(graph)
    for number in graph.order:
        ends[number] = run_ms[number] + max((ends[n] for n in graph.needs_of(number)), default=0)
    assert found.total_ms == max(ends, default=0) == sum(run_ms[n] for n in found.jobs)
    assert all(one in graph.needs_of(two) for one, two in pairwise(found.jobs))


def test_what_is_left_follows_from_past_run_times() -> None:
    graph = graph_of(DIAMOND)
    times = Times([DONE, RUNNING, WAITS, WAITS], array("q", [100, 2_100, 0, 0]), [2_100, 0, 0, 0])
    expected = estimates(times, [0, 0, 0, 0], [KNOWN], now=2_500)
    assert [one.whole for one in expected] == [2_000, 1_000, 1_000, 1_000]
    assert expected[1].left == Span(100, 600, 2_600)
    chain = longest_chain(graph, expected)
    assert chain.total_ms == 4_000
    found = progress(times, expected, chain)
    assert (found.total, found.done, found.running, found.at_once) == (4, 1, 1, 1)
    assert found.left == Span(1_100, 2_600, 8_600)  # one after the other
    assert (found.work_ms, found.done_ms, found.unknown) == (5_000, 2_400, 0)


def test_a_workflow_cannot_end_before_its_longest_chain() -> None:
    graph = graph_of({f"{n}": [] for n in range(10)} | {"x": ["0"], "y": ["x"]})
    times = Times([RUNNING] * 10 + [WAITS] * 2, [1] * 10 + [0, 0], [0] * 12)
    expected = estimates(times, [0] * 12, [KNOWN], now=1)
    found = progress(times, expected, longest_chain(graph, expected))
    assert found.at_once == 10
    assert found.left == Span(1_500, 3_000, 9_000)


def test_jobs_of_unknown_kinds_take_as_long_as_those_of_this_workflow() -> None:
    times = Times([DONE, WAITS, WAITS], [1, 0, 0], [501, 0, 0])
    expected = estimates(times, [0, 0, 1], [None, None], now=600)
    assert [(one.whole, one.known) for one in expected] == [(500, True), (500, True), (0, False)]
    ended = Times([DONE], [1], [501])
    done = progress(ended, estimates(ended, [0], [KNOWN], 600), Chain([0], 500, Span(0, 0, 0)))
    assert (done.left, done.unknown) == (None, 0)
