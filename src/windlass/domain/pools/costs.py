"""Charges machine time to namespaces, exact to the millisecond and the millionth.

A machine's time is charged in equal parts to the jobs it held at that time; the rest is idle time.
Totals depend only on where a period begins and ends, not on how often, or by which server, costs
are computed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from windlass.domain.pools.pools import HOUR_MS, CostRow, Pool
from windlass.domain.values.quantities import month_of, next_month

Payer = tuple[str, str]  # namespace and queue
NOBODY: Final[Payer] = ("", "")
NOTHING: Final = Fraction(0)


class Held(NamedTuple):
    """A job that a machine held for a while, and who pays for it."""

    since: int
    until: int
    payer: Payer


def charges(pool: Pool, since: int, until: int, held: Iterable[Held]) -> list[CostRow]:
    """Returns what one machine of a pool cost in a period, by month and payer."""
    jobs = list(held)
    rows: list[CostRow] = []
    for begin, end in _months(since, until):
        parts = _parts(begin, end, jobs)
        times = _apportion(end - begin, parts)
        money = _apportion(cost_micros(pool, end) - cost_micros(pool, begin), parts)
        month = month_of(begin)
        rows += [CostRow(pool.name, month, *who, times[who], money[who]) for who in sorted(parts)]
    return [row for row in rows if row.ms or row.micros]


def cost_micros(pool: Pool, ms: int) -> int:
    """Returns the cost of this many milliseconds of one worker."""
    return pool.hourly_price * ms // HOUR_MS


def _months(since: int, until: int) -> Iterator[tuple[int, int]]:
    while since < until:
        end = min(next_month(since), until)
        yield since, end
        since = end


def _parts(begin: int, end: int, held: Iterable[Held]) -> dict[Payer, Fraction]:
    """Returns each payer's part of the period."""
    steps: list[tuple[int, int, Payer]] = []
    for job in held:
        first, last = max(job.since, begin), min(job.until, end)
        if first < last:
            steps += [(first, 1, job.payer), (last, -1, job.payer)]
    parts: dict[Payer, Fraction] = {}
    now, there = begin, Counter[Payer]()
    for at, change, payer in [*sorted(steps), (end, 0, NOBODY)]:
        jobs = there.total()
        for who, count in there.items() if jobs else ((NOBODY, 1),):
            if at > now and count:
                parts[who] = parts.get(who, NOTHING) + Fraction((at - now) * count, jobs or 1)
        now = at
        there[payer] += change
    return parts


def _apportion(total: int, parts: Mapping[Payer, Fraction]) -> dict[Payer, int]:
    """Splits a whole number in these proportions into whole numbers that add up to it."""
    whole = sum(parts.values())
    exact = {who: total * part / whole for who, part in parts.items()}
    found = {who: int(amount) for who, amount in exact.items()}
    rest = total - sum(found.values())
    # The largest remainders are rounded up; names break ties.
    for who in sorted(exact, key=lambda one: (found[one] - exact[one], one))[:rest]:
        found[who] += 1
    return found
