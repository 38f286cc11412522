"""Predicts when a job will start and end, from the queue and past run times.

It is a forecast, not a promise: it treats all capable slots as equal, ignores limits, and cannot
know of jobs that are submitted later with a better rank. All times are milliseconds from now.
"""

import math
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from windlass.domain.explain.explanation import Estimate
from windlass.domain.rows.statistics import Summary
from windlass.domain.values.quantities import (
    counted,
    format_moment,
    format_size,
    readable_size,
)

ENOUGH: Final = 5  # runs needed before we suggest anything
FAR: Final = 4  # suggest less memory if a job asks for this many times its peak use
ROOM: Final = 1.25  # headroom above the largest run
_STEP: Final = 64 * 2**20  # suggested memory is a multiple of this


class Span(Struct, frozen=True):
    """A likely time and its likely range."""

    low: int
    likely: int
    high: int


class Forecast(Struct, frozen=True):
    """The predicted start and end of a job; None means unknown.

    A running job that takes longer than usual has no predicted end; `overdue_ms` says how late it
    is.
    """

    start: Span | None = None
    end: Span | None = None
    overdue_ms: int | None = None


class Line(Struct, frozen=True):
    """The slots that could run a job, and the jobs before it.

    `slots` counts those of all capable workers, `free` the idle ones among them. `ahead` counts the
    jobs before it, and `mix` is their mean run time, if known.
    """

    slots: int
    free: int
    ahead: int
    mix: Summary | None = None


def mixture(parts: Iterable[tuple[int, Summary]]) -> Summary | None:
    """Returns the average over several kinds of jobs, weighted by their numbers."""
    known = [(weight, summary) for weight, summary in parts if weight > 0]
    total = sum(weight for weight, _ in known)
    if not total:
        return None

    def mean(field: str) -> float:
        return sum(weight * float(getattr(one, field)) for weight, one in known) / total

    return Summary(
        count=sum(summary.count for _, summary in known),
        mean_ms=mean("mean_ms"),
        p10_ms=round(mean("p10_ms")),
        p50_ms=round(mean("p50_ms")),
        p90_ms=round(mean("p90_ms")),
    )


def wait_in(line: Line) -> Span | None:
    """Returns how long a job waits for a slot; None if no slot exists or run times are unknown.

    A slot must become free for each job ahead of it, and one more for the job itself. The more
    slots must become free, the more their run times average out.
    """
    if line.slots <= 0:
        return None
    needed = line.ahead - line.free + 1
    if needed <= 0:
        return Span(0, 0, 0)
    if line.mix is None:
        return None
    rounds, evened = needed / line.slots, math.sqrt(needed)
    mean = line.mix.mean_ms
    low = mean - max(0.0, mean - line.mix.p10_ms) / evened
    high = mean + max(0.0, line.mix.p90_ms - mean) / evened
    return Span(int(rounds * low), int(rounds * mean), math.ceil(rounds * high))


def forecast(line: Line, own: Summary | None, not_before_ms: int = 0) -> Forecast:
    """Predicts start and end of a waiting job, which may not start before `not_before_ms`."""
    wait = wait_in(line)
    if wait is None:
        return Forecast()
    start = Span(*(max(part, not_before_ms) for part in (wait.low, wait.likely, wait.high)))
    if own is None:
        return Forecast(start)
    low, high = _bounds(own)
    likely = start.likely + _likely(own)
    return Forecast(start, Span(start.low + low, likely, start.high + high))


def remaining(own: Summary | None, elapsed_ms: int) -> Forecast:
    """Predicts the end of a running job, or says how much longer than usual it has taken."""
    if own is None:
        return Forecast()
    low, high = _bounds(own)
    if elapsed_ms > high:
        return Forecast(overdue_ms=elapsed_ms - high)
    times = (low, _likely(own), high)
    return Forecast(None, Span(*(max(0, part - elapsed_ms) for part in times)))


def _likely(own: Summary) -> int:
    low, high = _bounds(own)
    return min(high, max(low, own.p50_ms))


def _bounds(own: Summary) -> tuple[int, int]:
    return min(own.p10_ms, own.p50_ms), max(own.p50_ms, own.p90_ms)


def estimate_of(now: int, span: Span | None) -> Estimate | None:
    """Returns a forecast as times."""
    if span is None:
        return None
    low, likely, high = (format_moment(now + part) for part in (span.low, span.likely, span.high))
    return Estimate(earliest=low, likely=likely, latest=high)


def suggestions(resources: Iterable[tuple[str, int]], known: Summary | None) -> list[str]:
    """Suggests other resources if the job asks for far more or far less than its kind used."""
    asked = dict(resources).get("memory", 0)
    if known is None or known.peak_memory is None or known.count < ENOUGH or not asked:
        return []
    used = known.peak_memory
    better = max(_STEP, math.ceil(used * ROOM / _STEP) * _STEP)
    measured = f"{counted(known.count, 'run')} used at most {readable_size(used)}"
    if used <= asked < FAR * used or (asked >= FAR * used and better >= asked):
        return []
    text = f"asks for {readable_size(asked)} of memory, {measured}"
    return [f"{text}: ask for memory={format_size(better)}"]
