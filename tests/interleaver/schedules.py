"""Who takes the next step: written out, or drawn from a seed; both can be repeated."""

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

NAMES = "abc"

# What these read never changes, or is locked, or is the transaction's own: whether another
# transaction comes before or behind them makes no difference.
QUIET = frozenset(
    {
        "append_events",
        "append_moves",
        "attempts",
        "bump_counters",
        "drop_leases",
        "end_jobs",
        "job_numbers",
        "job_specs",
        "meta",
        "note_tries",
        "now",
        "queues",
        "record_attempts",
        "set_workflow_states",
        "shapes_after",
        "workflow_numbers",
    }
)


class Schedule(Protocol):
    """Picks one of the transactions that can take a step; `str()` names it for a repetition."""

    def pick(self, able: Sequence[int]) -> int: ...


class Turns:
    """Written-out turns: "a4 b2" lets a take four steps, b two, then a and b as they come."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._order = [NAMES.index(turn[0]) for turn in text.split()]
        self._left = [int(turn[1:] or 1_000_000) for turn in text.split()]

    def __str__(self) -> str:
        return self._text

    def pick(self, able: Sequence[int]) -> int:
        for place, actor in enumerate(self._order):
            if self._left[place] > 0:
                if actor in able:
                    self._left[place] -= 1
                    return actor
                self._left[place] = 0  # It waits for a lock or is over: its turn is lost.
        return able[0]


class Seeded:
    """Drawn turns; the seed also decides how often they change."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._change = self._chance.choice((0.15, 0.4, 0.7))
        self._last = -1

    def __str__(self) -> str:
        return f"seed:{self._seed}"

    def pick(self, able: Sequence[int]) -> int:
        if self._last not in able or self._chance.random() < self._change:
            self._last = self._chance.choice(list(able))
        return self._last


def parse(text: str) -> Schedule:
    """A schedule from its name."""
    seed = text.removeprefix("seed:")
    return Turns(text) if seed == text else Seeded(int(seed))


def breaks(statements: Sequence[str]) -> list[int]:
    """After how many of these statements another transaction is worth letting in."""
    return [n for n, name in enumerate(statements) if n > 1 and name not in QUIET]


def one_break(first: Sequence[str], second: Sequence[str]) -> Iterator[Schedule]:
    """Each way in which one of two transactions breaks off the other once."""
    for step in breaks(first):
        yield Turns(f"a{step} b a")
    for step in breaks(second):
        yield Turns(f"b{step} a b")


def two_breaks(first: Sequence[str], second: Sequence[str]) -> Iterator[Schedule]:
    """Each way with one more: the second is broken off as well."""
    for one in breaks(first):
        for two in breaks(second):
            yield Turns(f"a{one} b{two} a b")
            yield Turns(f"b{two} a{one} b a")
