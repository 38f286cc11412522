"""Fair sharing: among jobs of one level, the namespace with the smallest share goes first.

A level is a whole step of the score, so fairness never delays a more urgent job.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from windlass.domain.rows.records import Ticket


def level_of(rank: int, now: int, interval_ms: int) -> int:
    """Returns the whole levels of a job's score, without the part that all jobs share."""
    return (now - rank) // interval_ms


def last_of_level(level: int, now: int, interval_ms: int) -> int:
    """Returns the highest, that is the least urgent, rank of this level."""
    return now - level * interval_ms


def in_turn(
    tickets: Sequence[Ticket],
    namespace: Callable[[int], str],
    running: Mapping[str, int],
    weights: Mapping[str, int],
    unfinished: Collection[int] = (),
) -> list[Ticket]:
    """Orders tickets of one level: each time the namespace with the least per weight goes next.

    `namespace` returns the namespace of a shape. `unfinished` shapes have more jobs than these
    tickets, so the order ends at the last ticket of such a shape.
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
