"""Compares two runs of a workflow: matches jobs by name and lists their differences."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.graphs.groups import natural_key

NEAR_MS: Final = 100  # smaller differences in time, absolute or relative, are ignored
NEAR_SHARE: Final = 0.1


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """A job in one of two runs; times are milliseconds, null if unknown."""

    job: int
    state: str
    run_ms: int | None
    wait_ms: int | None


class ComparedArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument with another value; long values are cut."""

    name: str
    a: Any
    b: Any


class ComparedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that differs in state, arguments, run time or wait, or is in only one run."""

    name: str
    a: ComparedSide | None
    b: ComparedSide | None
    state_differs: bool
    run_ms: int | None
    wait_ms: int | None
    arguments_differ: bool
    arguments: list[ComparedArgument]


class Side(NamedTuple):
    """A job of one run, with the digest of its arguments."""

    name: str
    arguments: int
    shown: ComparedSide


class Comparison(NamedTuple):
    """All differences, the largest first, and the number of unchanged jobs."""

    differences: Sequence[ComparedJob]
    same: int
    only_a: int
    only_b: int


def compare(a: Iterable[Side], b: Iterable[Side]) -> Comparison:
    """Matches jobs by name; equal names are matched in order."""
    left, right = _numbered(a), _numbered(b)
    found: list[ComparedJob] = []
    same = 0
    for key in dict.fromkeys((*left, *right)):
        one = _difference(left.get(key), right.get(key))
        if one is None:
            same += 1
        else:
            found.append(one)
    found.sort(key=_size)
    only_a = sum(one.b is None for one in found)
    only_b = sum(one.a is None for one in found)
    return Comparison(found, same, only_a, only_b)


def _numbered(sides: Iterable[Side]) -> dict[tuple[str, int], Side]:
    counts: Counter[str] = Counter()
    found: dict[tuple[str, int], Side] = {}
    for side in sides:
        found[side.name, counts[side.name]] = side
        counts[side.name] += 1
    return found


def _difference(a: Side | None, b: Side | None) -> ComparedJob | None:
    if a is None or b is None:
        known = a or b
        return None if known is None else _compared(known.name, a, b)
    one, other = a.shown, b.shown
    run, wait = _more(one.run_ms, other.run_ms), _more(one.wait_ms, other.wait_ms)
    state, arguments = one.state != other.state, a.arguments != b.arguments
    if not (state or arguments or run or wait):
        return None
    return _compared(a.name, a, b, state, arguments, run, wait)


def _compared(
    name: str,
    a: Side | None,
    b: Side | None,
    state: bool = False,
    arguments: bool = False,
    run_ms: int | None = None,
    wait_ms: int | None = None,
) -> ComparedJob:
    return ComparedJob(
        name=name, a=None if a is None else a.shown, b=None if b is None else b.shown,
        state_differs=state, run_ms=run_ms, wait_ms=wait_ms, arguments_differ=arguments,
        arguments=[],
    )  # fmt: skip


def _more(a: int | None, b: int | None) -> int | None:
    """Returns how much longer b took; None if about the same, or not known."""
    if a is None or b is None or abs(b - a) < max(NEAR_MS, NEAR_SHARE * max(a, b)):
        return None
    return b - a


def _size(one: ComparedJob) -> tuple[int, int, tuple[tuple[int, str], ...]]:
    """Sorts different outcomes first, then jobs in one run only, then by difference in time."""
    kind = 0 if one.state_differs else 1 if one.a is None or one.b is None else 2
    return kind, -abs(one.run_ms or 0) - abs(one.wait_ms or 0), natural_key(one.name)
