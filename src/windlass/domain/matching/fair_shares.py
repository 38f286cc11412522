"""Fairness between namespaces: among jobs of one level, those first that have the smallest share.

A level is a whole step of the score, so that a more urgent job is never held back by fairness.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from windlass.domain.rows.records import Ticket


def level_of(rank: int, now: int, interval_ms: int) -> int:
    """Returns whole levels that a job's score has reached, without what is the same for all."""
    return (now - rank) // interval_ms


def last_of_level(level: int, now: int, interval_ms: int) -> int:
    """Returns the highest rank, which is the least urgent one, of this level."""
    return now - level * interval_ms


def in_turn(
    tickets: Sequence[Ticket],
    namespace: Callable[[int], str],
    running: Mapping[str, int],
    weights: Mapping[str, int],
    unfinished: Collection[int] = (),
) -> list[Ticket]:
    """Tickets of one level, each time from whom has the least for its weight, best first.

    `namespace` tells whose a shape is. Of `unfinished` shapes there are more than these tickets:
    behind the last one of such a shape nothing is certain.
    """
    last = dict.fromkeys(unfinished, 0)
    for ticket in sorted(tickets, key=lambda t: (t.rank, t.job)):
        if ticket.shape in last:
            last[ticket.shape] = ticket.job
    waiting: dict[str, list[Ticket]] = {}
    for ticket in sorted(tickets, key=lambda t: (t.rank, t.job), reverse=True):
        waiting.setdefault(namespace(ticket.shape), []).append(ticket)
    has = {name: running.get(name, 0) for name in waiting}
    ordered: list[Ticket] = []
    while waiting:
        name = min(waiting, key=lambda n: (has[n] / weights.get(n, 1), waiting[n][-1].rank, n))
        ticket = waiting[name].pop()
        ordered.append(ticket)
        if last.get(ticket.shape) == ticket.job:
            break
        has[name] += 1
        if not waiting[name]:
            del waiting[name]
    return ordered
