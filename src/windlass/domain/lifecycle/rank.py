"""The order of the queue as one integer per job that never changes by itself.

`score = queue weight + base + adjustment + age / interval` grows at the same rate for all jobs, so
the order of two jobs never changes. `rank` is that order: lowest first, and by id where ranks are
equal. A job has the best rank of itself and the jobs it blocks (`lift`).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from windlass.domain.values.errors import InvalidInput

PRIORITY_NAMES: Final[Mapping[str, int]] = MappingProxyType({"high": 1, "medium": 0, "low": -1})

QUEUE_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {"live": 100, "default": 50, "batch": 10}
)
OTHER: Final = 50

# A level is then worth 69 years of waiting, and the extreme ranks still fit in 64 bits.
AGING_OFF_INTERVAL_MS: Final = 2**41
LEVEL_LIMIT: Final = 1_000_000

_HOUR_MS: Final = 3_600_000


def queue_weight(queue: str) -> int:
    """Returns the default weight of a queue."""
    return QUEUE_WEIGHTS.get(queue, OTHER)


def parse_priority(value: object, field: str = "priority") -> int:
    """Returns a priority given by name or number; refuses anything else and huge numbers."""
    expected = f"high, medium, low or an integer within ±{LEVEL_LIMIT}"
    number: int | None = None
    if isinstance(value, str):
        text = value.strip().lower()
        number = PRIORITY_NAMES.get(text)
        digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
        if number is None and len(digits) <= len(str(LEVEL_LIMIT)) and _is_digits(digits):
            number = int(text)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None or abs(number) > LEVEL_LIMIT:
        raise InvalidInput(field, expected, value)
    return number


def level(weight: int, base: int, adjustment: int) -> int:
    """Adds queue weight and priority, clamped to ±LEVEL_LIMIT."""
    return max(-LEVEL_LIMIT, min(LEVEL_LIMIT, weight + base + adjustment))


def checked_level(weight: int, base: int, adjustment: int, field: str = "priority") -> int:
    """Returns the level of a submitted job; refuses one beyond the limit."""
    total = weight + base + adjustment
    if abs(total) > LEVEL_LIMIT:
        expected = f"within ±{LEVEL_LIMIT} when the queue's weight of {weight} is added"
        raise InvalidInput(field, expected, base + adjustment)
    return total


def age_from_ms(created_at: int, not_before: int | None, first_queued_at: int | None) -> int:
    """Returns the time from which a job's age counts, fixed when it is first queued.

    `created_at` is the workflow's, else the job's; `not_before` is the one it was submitted with.
    Time spent blocked counts for at most an hour.
    """
    start = created_at
    if not_before is not None:
        start = max(start, not_before)
    if first_queued_at is not None:
        start = max(start, first_queued_at - _HOUR_MS)
    return start


def rank(age_from_ms: int, level: int, interval_ms: int) -> int:
    """Returns the job's position in the order, lowest first; an interval of 0 disables aging."""
    return age_from_ms - level * (interval_ms or AGING_OFF_INTERVAL_MS)


def score(level: int, age_from_ms: int, now_ms: int, interval_ms: int) -> float:
    """Returns the score as people see it; highest first."""
    if not interval_ms:
        return float(level)
    # A single integer division rounds once, which keeps the order of the ranks.
    return (now_ms - rank(age_from_ms, level, interval_ms)) / interval_ms


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def lift(
    own: Mapping[int, int], waits_for: Mapping[int, Sequence[int]]
) -> tuple[dict[int, int], frozenset[int]]:
    """Returns the ranks of jobs that wait for each other, and the jobs that lend theirs to another.

    Ids ascend from dependencies to dependents, so one pass downwards is enough.
    """
    ranks = dict(own)
    lenders: set[int] = set()
    for job in sorted(own, reverse=True):
        mine = ranks[job]
        for other in waits_for[job]:
            if ranks.get(other, mine) > mine:
                ranks[other] = mine
                lenders.add(job)
    return ranks, frozenset(lenders)


def levels_gained(own: int, rank: int, interval_ms: int) -> float:
    """Returns how many levels a job gains from the jobs that wait for it."""
    return max(0, own - rank) / interval_ms
