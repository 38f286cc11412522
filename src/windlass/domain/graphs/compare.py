"""Compares two runs of a workflow: matches jobs by name and lists their differences."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from windlass.domain.graphs.groups import natural_key

NEAR_MS: Final = 100  # smaller differences in time, absolute or relative, are ignored
NEAR_SHARE: Final = 0.1


class Side(NamedTuple):
    """A job of one run; None is a time that is not known yet."""

    job: int
    name: str
    state: int
    run_ms: int | None
    wait_ms: int | None
    arguments: int  # a digest


class Difference(NamedTuple):
    """A job that differs between the runs, or is in only one of them."""

    name: str
    a: Side | None
    b: Side | None
    state: bool
    arguments: bool
    run_ms: int | None  # how much longer it took in b
    wait_ms: int | None


class Comparison(NamedTuple):
    """All differences, the largest first, and the number of unchanged jobs."""

    differences: Sequence[Difference]
    same: int
    only_a: int
    only_b: int


def compare(a: Iterable[Side], b: Iterable[Side]) -> Comparison:
    """Matches jobs by name; equal names are matched in order."""
    left, right = _numbered(a), _numbered(b)
    found: list[Difference] = []
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


def _difference(a: Side | None, b: Side | None) -> Difference | None:
    if a is None or b is None:
        known = a or b
        return None if known is None else Difference(known.name, a, b, False, False, None, None)
    run, wait = _more(a.run_ms, b.run_ms), _more(a.wait_ms, b.wait_ms)
    state, arguments = a.state != b.state, a.arguments != b.arguments
    if not (state or arguments or run or wait):
        return None
    return Difference(a.name, a, b, state, arguments, run, wait)


def _more(a: int | None, b: int | None) -> int | None:
    """Returns how much longer b took; None if about the same, or not known."""
    if a is None or b is None or abs(b - a) < max(NEAR_MS, NEAR_SHARE * max(a, b)):
        return None
    return b - a


def _size(one: Difference) -> tuple[int, int, tuple[tuple[int, str], ...]]:
    """Sorts different outcomes first, then jobs in one run only, then by difference in time."""
    kind = 0 if one.state else 1 if one.a is None or one.b is None else 2
    return kind, -abs(one.run_ms or 0) - abs(one.wait_ms or 0), natural_key(one.name)
