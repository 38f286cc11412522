"""Counts over time: what happened in each minute, ten minutes and hour, by namespace and queue.

The counts of a slot are added up from the event log, each event once. The number of jobs in each
state at the end of a slot follows from the same events. Slots of all three lengths are written side
by side, so that a chart of any range reads a few hundred rows.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import fields

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    QUEUED,
    TERMINAL_CODES,
    State,
)
from windlass.domain.rows.statistics import bucket_of, middle_of

MINUTE: Final = 60_000
TEN_MINUTES: Final = 600_000
HOUR: Final = 3_600_000
STEPS: Final = (MINUTE, TEN_MINUTES, HOUR)

_LOST: Final = FailureClass.WORKER_LOST.code


class SeriesKind(IntEnum):
    """What a row is about. The numbers are stored; never reuse one."""

    WORK = 1  # jobs of a namespace and queue; `Figures`
    WORKERS = 2  # workers by state, the row's name; a count
    POOL = 3  # living workers of a pool, the row's name; a count for each state
    MARK = 4  # the last event of a slot and the time of its end; `Mark`
    TOTAL = 5  # jobs of a namespace and queue by state, now; step and time are 0
    GONE = 6  # the shape (as its name) of a job (its time) that was deleted before it was counted
    PLAN = 7  # what the pools loop decided for a pool, the row's name; `PlanFigures`


class SeriesRow(NamedTuple):
    """A row as stores keep it; `body` is JSON."""

    kind: int
    step: int
    at: int
    namespace: str
    name: str
    body: str


class SeriesKey(NamedTuple):
    """Where counts belong."""

    kind: int
    step: int
    at: int
    namespace: str
    name: str


class Move(NamedTuple):
    """One transition of a job, with what the counts need to know about the job.

    `shape` is None if the job is gone. `failure` and `started_at` belong to the attempt that ended.
    """

    seq: int
    at: int
    source: int
    to: int
    attempt: int
    shape: int | None
    age_from: int
    started_at: int | None
    failure: int


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """How far the counts of a slot go: the last event, and the end of the slot's last minute."""

    seq: int
    until: int


class Spread(msgspec.Struct, array_like=True):
    """Durations, counted in buckets, eight per octave (see `statistics.py`)."""

    count: int = 0
    total: int = 0
    high: int = 0
    buckets: dict[int, int] = {}

    def add(self, value: int) -> None:
        """Adds a duration; a negative one (a clock set back) counts as 0."""
        value = max(0, value)
        bucket = bucket_of(value)
        self.count += 1
        self.total += value
        self.high = max(self.high, value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def merge(self, other: "Spread") -> None:
        """Adds all durations of another one."""
        self.count += other.count
        self.total += other.total
        self.high = max(self.high, other.high)
        _add(self.buckets, other.buckets)

    def quantile(self, share: float) -> int | None:
        """Returns a duration that about this share does not exceed; None without durations."""
        if not self.count:
            return None
        left = share * self.count * (1 - 1e-9)
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return min(self.high, middle_of(bucket))
        return self.high


class PlanFigures(msgspec.Struct, frozen=True, array_like=True):
    """What a pool had and wanted in one slot: the most it wanted, and the latest of the rest.

    `latency_ms` is the longest of the slot, -1 if no worker could run the work. Time and money are
    for the month so far; a `budget_ms` of 0 means no limit.
    """

    wanted: int
    machines: int
    ready: int
    most: int
    latency_ms: int
    target_ms: int
    used_ms: int
    used_micros: int
    budget_ms: int
    reason: str

    def after(self, earlier: "PlanFigures") -> "PlanFigures":
        """Merges with the earlier part of the same slot."""
        return msgspec.structs.replace(
            self,
            wanted=max(self.wanted, earlier.wanted),
            latency_ms=max(self.latency_ms, earlier.latency_ms),
        )


class Figures(msgspec.Struct, array_like=True):
    """What happened to the jobs of a namespace and queue in one slot.

    `failed` and `failures` (by class) count jobs; `retried` and `lost` count attempts. `depth` is
    how many jobs were in each open state at the end of the slot, `high` the maximum that were
    queued.
    """

    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    stopped: int = 0  # canceled, aborted or rejected
    retried: int = 0
    lost: int = 0
    failures: dict[int, int] = {}
    wait: Spread = msgspec.field(default_factory=Spread)
    run: Spread = msgspec.field(default_factory=Spread)
    depth: dict[int, int] = {}
    high: int = 0
    rejected: int = 0
    canceled: int = 0

    def count(self, move: Move) -> None:
        """Counts one transition."""
        if not move.source:
            self.submitted += 1
        if move.to == State.RUNNING.code:
            self.started += 1
        elif move.to == State.ASSIGNED.code and move.attempt == 1:
            self.wait.add(move.at - move.age_from)
        elif move.to == State.COMPLETED.code:
            self.completed += 1
            if move.started_at is not None:
                self.run.add(move.at - move.started_at)
        elif move.to == State.FAILED.code:
            self.failed += 1
            self.failures[move.failure] = self.failures.get(move.failure, 0) + 1
        elif move.to in TERMINAL_CODES:
            self.stopped += 1
            self.rejected += move.to == State.REJECTED.code
            self.canceled += move.to == State.CANCELED.code
        elif move.to == State.RETRYING.code:
            self.retried += 1
        if move.source in ACTIVE_CODES and move.to not in ACTIVE_CODES and move.failure == _LOST:
            self.lost += 1

    def sample(self, depth: Mapping[int, int]) -> None:
        """Records how many jobs are in each open state at the end of a minute."""
        self.depth = {state: count for state, count in depth.items() if count}
        self.high = max(self.high, depth.get(QUEUED, 0))

    def merge(self, other: "Figures") -> None:
        """Adds the figures of the same slot in another queue."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        _add(self.failures, other.failures)
        _add(self.depth, other.depth)
        self.wait.merge(other.wait)
        self.run.merge(other.run)


_NUMBERS: Final = tuple(field.name for field in fields(Figures) if field.type is int)


def _add(counts: dict[int, int], others: Mapping[int, int]) -> None:
    for key, count in others.items():
        counts[key] = counts.get(key, 0) + count


def slot_of(at: int, step: int) -> int:
    """Returns when the slot that contains a time begins."""
    return at - at % step


def shift(depth: dict[int, int], source: int, to: int, by: int = 1) -> None:
    """Moves jobs from one state to another; ended jobs are not counted."""
    if source:
        depth[source] = depth.get(source, 0) - by
    if to not in TERMINAL_CODES:
        depth[to] = depth.get(to, 0) + by


_counts: Final = msgspec.json.Decoder(dict[int, int]).decode
_figures: Final = msgspec.json.Decoder(Figures).decode
_plan: Final = msgspec.json.Decoder(PlanFigures).decode
_mark: Final = msgspec.json.Decoder(Mark).decode
_encode: Final = msgspec.json.Encoder().encode


def read_counts(row: SeriesRow) -> dict[int, int]:
    """Returns the counts of a row by state."""
    return _counts(row.body)


def read_figures(row: SeriesRow) -> Figures:
    """Returns the figures of a row."""
    return _figures(row.body)


def read_plan(row: SeriesRow) -> PlanFigures:
    """Returns what a pool had and wanted, from a row."""
    return _plan(row.body)


def read_mark(row: SeriesRow) -> Mark:
    """Returns the mark from a row."""
    return _mark(row.body)


def as_series(key: SeriesKey, body: Figures | PlanFigures | Mark | Mapping[int, int]) -> SeriesRow:
    """Returns figures, a mark or counts as a store keeps them."""
    if isinstance(body, Figures | PlanFigures | Mark):
        return SeriesRow(*key, _encode(body).decode())
    return SeriesRow(*key, _encode({n: body[n] for n in sorted(body) if body[n]}).decode())
