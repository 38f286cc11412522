"""Run times and memory of attempts per shape: count, mean and quantiles from a histogram.

A histogram has eight buckets per octave, so values read from it are at most 9 % off. However long
its history, it holds at most a few hundred numbers.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

PER_OCTAVE: Final = 8

_decode: Final = msgspec.json.Decoder(dict[int, int]).decode


class Measure(IntEnum):
    """What was measured. The numbers are stored; never reuse one."""

    RUN_MS = 1  # from start to end of the completed attempt
    PEAK_MEMORY = 2  # bytes


class StatisticsRow(NamedTuple):
    """What a store keeps for one shape and measure; `buckets` is a JSON object."""

    shape: int
    measure: int
    seen: int  # how many values
    total: int
    low: int
    high: int
    buckets: str


class Usage(NamedTuple):
    """What an attempt used on its machine, if its executor could measure it."""

    job: int
    attempt: int
    peak_memory: int  # bytes


class Histogram(msgspec.Struct, frozen=True):
    """Measured values, counted in buckets; sum, minimum and maximum are exact."""

    count: int = 0
    total: int = 0
    low: int = 0
    high: int = 0
    buckets: Mapping[int, int] = msgspec.field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Returns the arithmetic mean; 0 before the first value."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """Returns a value that about this share of values does not exceed; 0 if empty."""
        left = math.ceil(share * self.count)
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return max(self.low, min(self.high, middle_of(bucket)))
        return self.high


class Summary(msgspec.Struct, frozen=True):
    """What we know about jobs of one shape; memory is None if it was not measured."""

    count: int
    mean_ms: float
    p10_ms: int
    p50_ms: int
    p90_ms: int
    peak_memory: int | None = None  # the largest
    peak_memory_p90: int | None = None


def bucket_of(value: int) -> int:
    """Returns the bucket of a value: 0 holds 0 and 1, and each octave has eight."""
    return int(PER_OCTAVE * math.log2(value)) if value > 1 else 0


def middle_of(bucket: int) -> int:
    """Returns a value in the middle of a bucket."""
    return round(2 ** ((bucket + 0.5) / PER_OCTAVE)) if bucket else 1


def gather(values: Iterable[int]) -> Histogram:
    """Returns the histogram of some values; negative ones (a clock set back) count as 0."""
    count = total = 0
    low, high = -1, 0
    buckets: dict[int, int] = {}
    for given in values:
        value = max(0, given)
        count, total = count + 1, total + value
        low = value if low < 0 else min(low, value)
        high = max(high, value)
        bucket = bucket_of(value)
        buckets[bucket] = buckets.get(bucket, 0) + 1
    return Histogram(count, total, max(0, low), high, buckets)


def merge(one: Histogram, other: Histogram) -> Histogram:
    """Adds up two histograms; the order does not matter."""
    if not one.count or not other.count:
        return one if one.count else other
    buckets = dict(one.buckets)
    for bucket, count in other.buckets.items():
        buckets[bucket] = buckets.get(bucket, 0) + count
    return Histogram(
        one.count + other.count,
        one.total + other.total,
        min(one.low, other.low),
        max(one.high, other.high),
        buckets,
    )


def as_row(shape: int, measure: Measure, found: Histogram) -> StatisticsRow:
    """Returns the histogram as a store keeps it."""
    body = msgspec.json.encode({str(b): found.buckets[b] for b in sorted(found.buckets)}).decode()
    return StatisticsRow(shape, int(measure), found.count, found.total, found.low, found.high, body)


def as_histogram(row: StatisticsRow) -> Histogram:
    """Returns the histogram that a store has kept."""
    return Histogram(row.seen, row.total, row.low, row.high, _decode(row.buckets))


def summarise(rows: Iterable[StatisticsRow]) -> dict[int, Summary]:
    """Returns what we know about each shape, from its rows; shapes without runs are absent."""
    runs: dict[int, Histogram] = {}
    memory: dict[int, Histogram] = {}
    for row in rows:
        (runs if row.measure == Measure.RUN_MS else memory)[row.shape] = as_histogram(row)
    return {shape: _summary(runs[shape], memory.get(shape)) for shape in sorted(runs)}


def _summary(run: Histogram, memory: Histogram | None) -> Summary:
    return Summary(
        run.count,
        run.mean,
        run.quantile(0.1),
        run.quantile(0.5),
        run.quantile(0.9),
        None if memory is None else memory.high,
        None if memory is None else memory.quantile(0.9),
    )
