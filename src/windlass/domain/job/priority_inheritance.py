"""Priority inheritance: a job is ordered by the best rank among itself and those it blocks.

Ranks are places in the order, lowest first, so the best is the smallest.
"""

from collections.abc import Mapping, Sequence


def lift(
    own: Mapping[int, int], waits_for: Mapping[int, Sequence[int]]
) -> tuple[dict[int, int], frozenset[int]]:
    """Returns the ranks of jobs that wait for each other, and those that lend theirs to another.

    Ids ascend from dependencies to dependents, so one pass downward is enough.
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
    """Returns by how many levels those that wait for a job lift it."""
    return max(0, own - rank) / interval_ms
