"""When a job is likely to start and to end, from what is ahead of it and what such jobs took.

A forecast, not a promise: it takes every capable slot for equal, knows nothing of limits,
and what is submitted later with a better rank comes first. All times are milliseconds from
now.
"""

import math
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from windlass.domain.rows.statistics import Summary
from windlass.domain.values.quantities import format_size

ENOUGH: Final = 5  # runs before anything is suggested
FAR: Final = 4  # times more than was ever used
ROOM: Final = 1.25  # what a suggestion leaves above the largest run
_STEP: Final = 64 * 2**20  # suggested memory is a multiple of it


class Span(Struct, frozen=True):
    """A time and the range it will most likely be in."""

    low: int
    likely: int
    high: int


class Forecast(Struct, frozen=True):
    """None stands for what cannot be told."""

    start: Span | None = None
    end: Span | None = None


class Line(Struct, frozen=True):
    """Who could run a job, and what they may be given before it.

    `slots` are those of all workers that could run it, `free` of which do nothing; `ahead`
    are jobs that stand before it, `mix` what is known of how long those take.
    """

    slots: int
    free: int
    ahead: int
    mix: Summary | None = None


def mixture(parts: Iterable[tuple[int, Summary]]) -> Summary | None:
    """Returns what jobs of several kinds take, each kind with how many there are of it."""
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
    """How long a job waits for a slot; None if there is none, or nobody knows how long jobs take.

    As many slots must become free as there are jobs before it that have none, and one more.
    The more of them, the more their run times even out.
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
    """Returns when a job that waits will start and end; it may not start before `not_before_ms`."""
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
    """Returns when a job that runs will end.

    One that takes longer than most may end at any moment.
    """
    if own is None:
        return Forecast()
    low, high = _bounds(own)
    times = (low, _likely(own), high)
    return Forecast(None, Span(*(max(0, part - elapsed_ms) for part in times)))


def _likely(own: Summary) -> int:
    low, high = _bounds(own)
    return min(high, max(low, own.p50_ms))


def _bounds(own: Summary) -> tuple[int, int]:
    return min(own.p10_ms, own.p50_ms), max(own.p50_ms, own.p90_ms)


def suggestions(resources: Iterable[tuple[str, int]], known: Summary | None) -> list[str]:
    """Returns what to ask for instead, where that is far from what such jobs used."""
    asked = dict(resources).get("memory", 0)
    if known is None or known.peak_memory is None or known.count < ENOUGH or not asked:
        return []
    used = known.peak_memory
    better = max(_STEP, math.ceil(used * ROOM / _STEP) * _STEP)
    measured = f"{known.count} runs used at most {format_size(used)}"
    if used <= asked < FAR * used or (asked >= FAR * used and better >= asked):
        return []
    text = f"asks for {format_size(asked)} of memory, {measured}"
    return [f"{text}: ask for memory={format_size(better)}"]
