"""Run times and memory of attempts per kind of work: quantiles from a histogram that fades.

A histogram has eight buckets per octave, so values read from it are at most 9 % off. However long
its history, it holds at most a few hundred numbers. Values lose half of their weight in a day, and
the past never weighs more than a few hundred new values: when work changes, the estimates soon
follow.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

PER_OCTAVE: Final = 8
HALF_LIFE_MS: Final = 86_400_000
MAX_WEIGHT: Final = 200.0  # maximum weight of the past when values are added
MIN_WEIGHT: Final = 0.05  # a bucket that weighs less is forgotten

_decode: Final = msgspec.json.Decoder(dict[int, float]).decode


class Measure(IntEnum):
    """What was measured. The numbers are stored; never reuse one."""

    RUN_MS = 1  # from start to end of the completed attempt
    PEAK_MEMORY = 2  # bytes


class WorkKind(NamedTuple):
    """A kind of work in a queue of a namespace."""

    namespace: str
    queue: str
    name: str


class StatisticsRow(NamedTuple):
    """What a store keeps for one kind and measure; `buckets` is a JSON object."""

    namespace: str
    queue: str
    kind: str
    measure: int
    seen: int  # how many values were ever added
    weight: float  # total weight of the remembered values
    total: float  # sum of the remembered values times their weight
    low: int
    high: int
    updated_at: int
    buckets: str

    @property
    def of(self) -> WorkKind:
        return WorkKind(self.namespace, self.queue, self.kind)


class Usage(NamedTuple):
    """What an attempt used on its machine, if its executor could measure it."""

    job: int
    attempt: int
    peak_memory: int  # bytes


class Histogram(msgspec.Struct, frozen=True):
    """Measured values, counted in buckets by weight; `seen` counts all that were ever added."""

    seen: int = 0
    weight: float = 0.0
    total: float = 0.0
    low: int = 0
    high: int = 0
    buckets: Mapping[int, float] = msgspec.field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Returns the arithmetic mean; 0 before the first value."""
        return self.total / self.weight if self.weight else 0.0

    def quantile(self, share: float) -> int:
        """Returns a value that about this share of values does not exceed; 0 if empty."""
        left = share * self.weight * (1 - 1e-9)
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return max(self.low, min(self.high, middle_of(bucket)))
        return self.high


class Summary(msgspec.Struct, frozen=True):
    """What we know about a kind of work; memory is None if it was not measured."""

    count: int
    mean_ms: float
    p10_ms: int
    p50_ms: int
    p90_ms: int
    peak_memory: int | None = None  # the largest
    peak_memory_p90: int | None = None
    kind: str = ""


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
    buckets: dict[int, float] = {}
    for given in values:
        value = max(0, given)
        count, total = count + 1, total + value
        low = value if low < 0 else min(low, value)
        high = max(high, value)
        bucket = bucket_of(value)
        buckets[bucket] = buckets.get(bucket, 0) + 1
    return Histogram(count, count, total, max(0, low), high, buckets)


def fade(known: Histogram, elapsed_ms: int) -> Histogram:
    """Returns the histogram faded by this time, and bounded in weight against new values."""
    factor = 0.5 ** (max(0, elapsed_ms) / HALF_LIFE_MS)
    if known.weight * factor > MAX_WEIGHT:
        factor = MAX_WEIGHT / known.weight
    if factor == 1.0:
        return known
    kept = {b: w * factor for b, w in known.buckets.items() if w * factor >= MIN_WEIGHT}
    if not kept:
        return Histogram(seen=known.seen)
    share = sum(kept.values()) / known.weight
    lowest, highest = min(kept), max(kept)
    return Histogram(
        known.seen,
        known.weight * share,
        known.total * share,
        known.low if lowest == bucket_of(known.low) else middle_of(lowest),
        known.high if highest == bucket_of(known.high) else middle_of(highest),
        kept,
    )


def merge(one: Histogram, other: Histogram) -> Histogram:
    """Adds up two histograms; the order does not matter."""
    if not one.weight or not other.weight:
        found = one if one.weight else other
        return msgspec.structs.replace(found, seen=one.seen + other.seen)
    buckets = dict(one.buckets)
    for bucket, weight in other.buckets.items():
        buckets[bucket] = buckets.get(bucket, 0) + weight
    return Histogram(
        one.seen + other.seen,
        one.weight + other.weight,
        one.total + other.total,
        min(one.low, other.low),
        max(one.high, other.high),
        buckets,
    )


def as_row(kind: WorkKind, measure: Measure, found: Histogram, now: int) -> StatisticsRow:
    """Returns the histogram as a store keeps it."""
    counts = {str(b): round(found.buckets[b], 4) for b in sorted(found.buckets)}
    body = msgspec.json.encode(counts).decode()
    return StatisticsRow(
        *kind, int(measure), found.seen, float(found.weight), float(found.total), found.low,
        found.high, now, body,
    )  # fmt: skip


def as_histogram(row: StatisticsRow) -> Histogram:
    """Returns the histogram that a store kept."""
    return Histogram(row.seen, row.weight, row.total, row.low, row.high, _decode(row.buckets))


def summarise(rows: Iterable[StatisticsRow]) -> dict[WorkKind, Summary]:
    """Returns what we know about each kind, from its rows; kinds without runs are absent."""
    runs: dict[WorkKind, Histogram] = {}
    memory: dict[WorkKind, Histogram] = {}
    for row in rows:
        found = as_histogram(row)
        if found.weight:
            (runs if row.measure == Measure.RUN_MS else memory)[row.of] = found
    return {kind: _summary(kind, runs[kind], memory.get(kind)) for kind in sorted(runs)}


def _summary(kind: WorkKind, run: Histogram, memory: Histogram | None) -> Summary:
    return Summary(
        run.seen,
        run.mean,
        run.quantile(0.1),
        run.quantile(0.5),
        run.quantile(0.9),
        None if memory is None else memory.high,
        None if memory is None else memory.quantile(0.9),
        kind.name,
    )
