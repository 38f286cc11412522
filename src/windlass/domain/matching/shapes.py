"""A shape is everything a claim filters by, with the rate of its jobs. Many jobs share few shapes.

A rate limits exactly how many jobs with a key may start within any period. We remember the newest
starts one by one: a token bucket would let through twice as many around the end of a window, or
none at once.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from windlass.domain.access.secrets import EVERYONE
from windlass.domain.matching.clauses import Clause, mode_clause
from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.matching.matching import Mismatch, mismatches
from windlass.domain.values.errors import InvalidInput

MAX_STARTS: Final = 1_000  # remembered for one key
MAX_MS: Final = 366 * 86_400_000


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `max` jobs with this key start within any `per_ms`, per namespace."""

    key: str
    max: int
    per_ms: int


def check_rate(rate: Rate, field: str) -> None:
    """Raises `InvalidInput` for impossible numbers. The key is checked as a name."""
    if not _is_whole(rate.max) or not 1 <= rate.max <= MAX_STARTS:
        expected = f"an integer from 1 to {MAX_STARTS}; for more, use a shorter period"
        raise InvalidInput(f"{field}.max", expected, rate.max)
    if not _is_whole(rate.per_ms) or not 1 <= rate.per_ms <= MAX_MS:
        raise InvalidInput(f"{field}.per", "a duration from 1ms to 366d", rate.per_ms)


def room_in(rate: Rate, starts: Sequence[int], now: int) -> int:
    """Returns how many may start now, given the earlier starts in ascending order."""
    return max(0, rate.max - (len(starts) - bisect_right(starts, now - rate.per_ms)))


def opens_at(rate: Rate, starts: Sequence[int]) -> int:
    """Returns when the next job may start; 0 if now."""
    return starts[-rate.max] + rate.per_ms if len(starts) >= rate.max else 0


def read_starts(text: str) -> list[int]:
    """Parses stored starts."""
    return msgspec.json.decode(text, type=list[int])


def write_starts(starts: Sequence[int], keep: int) -> str:
    """Formats the newest `keep` starts for storing."""
    return msgspec.json.encode(starts[-keep:] if keep else []).decode()


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


NAMESPACES: Final = "namespaces"


class Shape(Struct, frozen=True):
    """Requirements and resources are in canonical form, so equal needs give equal shapes.

    A worker that holds a job with the same `apart` gets no other. Workers that meet more of
    `prefers` are preferred.
    """

    namespace: str
    queue: str
    task: str
    requires: tuple[Clause, ...] = ()
    resources: tuple[tuple[str, int], ...] = ()
    apart: str | None = None
    prefers: tuple[Clause, ...] = ()
    rate: Rate | None = None


class _Plain(Struct):
    """A shape as it was encoded before it had more fields, so that its digest stays the same."""

    namespace: str
    queue: str
    task: str
    requires: tuple[Clause, ...]
    resources: tuple[tuple[str, int], ...]


def shape_digest(shape: Shape) -> str:
    """Returns a digest of the shape that is the same in every process."""
    if shape.apart is None and not shape.prefers and shape.rate is None:
        plain = _Plain(shape.namespace, shape.queue, shape.task, shape.requires, shape.resources)
        return sha256(msgspec.json.encode(plain)).hexdigest()[:32]
    return sha256(msgspec.json.encode(shape)).hexdigest()[:32]


def in_queue(shape: Shape, mode: str | None) -> Shape:
    """Returns the shape with the isolation of its queue; None means any."""
    if mode in (None, WEAKEST) or (clause := mode_clause(mode)) in shape.requires:
        return shape
    return replace(shape, requires=(*shape.requires, clause))


def is_gated(shape: Shape) -> bool:
    """Returns True if more than the match decides whether a worker may have such jobs now."""
    return bool(shape.resources) or shape.apart is not None or shape.rate is not None


def preferred(shape: Shape, metadata: Mapping[str, object]) -> int:
    """Returns how many of its preferences this worker meets."""
    unmet = sum(1 for _ in mismatches(shape.task, shape.prefers, (), metadata))
    return len(shape.prefers) - unmet


def can_run(shape: Shape, metadata: Mapping[str, object]) -> Mismatch | None:
    """Returns the first reason why a worker cannot run this shape; None if it can."""
    return next(shape_mismatches(shape, metadata), None)


def shape_mismatches(shape: Shape, metadata: Mapping[str, object]) -> Iterator[Mismatch]:
    """Yields all reasons why a worker cannot run this shape."""
    served = metadata.get(NAMESPACES)
    if served is not None:
        names = served if isinstance(served, list | tuple) else (served,)
        if shape.namespace not in names and EVERYONE not in names:
            # Not everyone who may explain a job may know the namespaces.
            has = "other namespaces" if names else "no namespaces"
            yield Mismatch(NAMESPACES, NAMESPACES, f"namespace {shape.namespace}", has)
    yield from mismatches(shape.task, shape.requires, shape.resources, metadata)
