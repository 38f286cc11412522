"""The longest chain of jobs by run time, the progress of a workflow, and when it may end."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from windlass.domain.explain.forecast import Span
from windlass.domain.graphs.graph import Graph
from windlass.domain.lifecycle.states import COMPLETED, TERMINAL_CODES, State
from windlass.domain.rows.statistics import Summary

RUNNING: Final = frozenset({State.RUNNING.code, State.CANCELING.code, State.TIMED_OUT.code})


class Times(NamedTuple):
    """When jobs started and ended, by index; 0 means not yet."""

    states: Sequence[int]
    started: Sequence[int]
    finished: Sequence[int]


class Estimate(NamedTuple):
    """How long a job takes in total, and how much of it is left, in milliseconds."""

    whole: int
    left: Span
    known: bool  # False: unknown, so it counts as 0


class Chain(NamedTuple):
    """Jobs that each wait for the one before, by index, and their total run time."""

    jobs: Sequence[int]
    total_ms: int
    left: Span


class Progress(NamedTuple):
    """The progress of a workflow. `left` counts from now; None if it has ended or is unknown.

    `work_ms` is the run time of all jobs, `done_ms` the part that is over. `unknown` jobs have no
    known run time and count as 0. `at_once` is how many jobs we assume run at once.
    """

    total: int
    done: int
    running: int
    work_ms: int
    done_ms: int
    unknown: int
    at_once: int
    left: Span | None


LINK: Final = 1 << 24  # more than the jobs of any chain: a millisecond outweighs all links

_NOTHING: Final = Span(0, 0, 0)


def estimates(
    times: Times, kinds: Sequence[int], known: Sequence[Summary | None], now: int
) -> list[Estimate]:
    """Returns how long each job takes or took; `kinds` is the place of its kind in `known`.

    For an unknown kind we take the run times of that kind in this workflow.
    """
    own = _means(times, kinds, len(known))
    spans = [_span_of(summary, mean) for summary, mean in zip(known, own, strict=True)]
    # Jobs that have not started share the estimate of their kind, and ended jobs that of their run
    # time: a new object for each would cause long pauses of the garbage collector.
    waiting = [
        Estimate(0, _NOTHING, False) if span is None else Estimate(span.likely, span, True)
        for span in spans
    ]
    ended: dict[int, Estimate] = {}
    found: list[Estimate] = []
    for number, state in enumerate(times.states):
        started = times.started[number]
        if state in TERMINAL_CODES:
            whole = max(0, times.finished[number] - started) if started else 0
            found.append(
                ended.get(whole) or ended.setdefault(whole, Estimate(whole, _NOTHING, True))
            )
            continue
        kind = kinds[number]
        elapsed = max(0, now - started) if started and state in RUNNING else 0
        if not elapsed:
            found.append(waiting[kind])
            continue
        span = spans[kind] or _NOTHING
        left = Span(*(max(0, part - elapsed) for part in (span.low, span.likely, span.high)))
        found.append(Estimate(elapsed + left.likely, left, spans[kind] is not None))
    return found


def _span_of(known: Summary | None, mean: int | None) -> Span | None:
    """Returns how long jobs of a kind take; from this workflow if nothing else is known."""
    if known is not None:
        return Span(*sorted((known.p10_ms, known.p50_ms, known.p90_ms)))
    return None if mean is None else Span(mean, mean, mean)


def _means(times: Times, kinds: Sequence[int], count: int) -> list[int | None]:
    sums, counts = [0] * count, [0] * count
    for number, state in enumerate(times.states):
        if state == COMPLETED and times.started[number]:
            sums[kinds[number]] += max(0, times.finished[number] - times.started[number])
            counts[kinds[number]] += 1
    return [total // n if n else None for total, n in zip(sums, counts, strict=True)]


def longest_chain(graph: Graph, expected: Sequence[Estimate]) -> Chain:
    """Returns the chain of dependent jobs that takes longest; of equal ones that with most jobs."""
    if not len(graph):
        return Chain((), 0, _NOTHING)
    starts, needs = graph.starts, graph.needs
    ends = [0] * len(graph)
    before = [-1] * len(graph)
    at = ends.__getitem__
    for number in graph.order:
        first, last = starts[number], starts[number + 1]
        whole = expected[number].whole * LINK + 1
        if first < last:
            best = max(needs[first:last], key=at)
            before[number] = best
            whole += ends[best]
        ends[number] = whole
    number = max(range(len(ends)), key=at)
    chain = [number]
    while (number := before[number]) >= 0:
        chain.append(number)
    chain.reverse()
    return Chain(chain, ends[chain[-1]] // LINK, _add(expected[one].left for one in chain))


def progress(times: Times, expected: Sequence[Estimate], chain: Chain) -> Progress:
    """Returns the progress of a workflow, and when it ends if as many jobs run at once as now.

    It cannot end before its longest chain, nor before the remaining work is shared out.
    """
    done = sum(state in TERMINAL_CODES for state in times.states)
    running = sum(state in RUNNING for state in times.states)
    rest = _add(one.left for one in expected)
    unknown = sum(not one.known for one in expected)
    at_once = max(1, running)
    left = None
    if done < len(expected) and rest.high:
        parts = zip(_parts(rest), _parts(chain.left), strict=True)
        left = Span(*(max(whole // at_once, path) for whole, path in parts))
    work = sum(one.whole for one in expected)
    return Progress(
        len(expected), done, running, work, max(0, work - rest.likely), unknown, at_once, left
    )


def _parts(span: Span) -> tuple[int, int, int]:
    return span.low, span.likely, span.high


def _add(spans: Iterable[Span]) -> Span:
    low = likely = high = 0
    for span in spans:
        low, likely, high = low + span.low, likely + span.likely, high + span.high
    return Span(low, likely, high)
