"""Plans which ready job goes to which worker; every claim uses it.

A claim merges the first jobs of all shapes that a worker can run. The caller reads the shapes with
the lowest bounds first; `settled` returns the part of the merged order that is certain, and
`assign` hands out the jobs. Sharing is fair: among jobs of one level (a whole step of the score),
the namespace with the smallest share goes first. It never delays a more urgent job.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from windlass.domain.matching.suspects import COMPANY, NOBODY, Company
from windlass.domain.rows.records import Ticket


class Demand(NamedTuple):
    """A worker that asks for jobs."""

    worker: int
    incarnation: int
    want: int
    runs: Callable[[int], bool]  # shape → True if the worker can run it
    company: Company = NOBODY  # what it holds already


def settled(tickets: Sequence[Ticket], bound: tuple[int, int] | None) -> list[Ticket]:
    """Returns the tickets, in order, that no job beyond `bound` (rank, job) could precede."""
    ordered = sorted(tickets, key=_place)
    if bound is None:
        return ordered
    return [ticket for ticket in ordered if (ticket.rank, ticket.job) <= bound]


class Ledger(Protocol):
    """Tracks what workers have left besides their slots."""

    def room(self, worker: int, shape: int) -> int:
        """Returns how many more jobs of a shape this worker may take."""

    def take(self, worker: int, shape: int, jobs: int) -> None: ...


def assign(
    demands: Sequence[Demand], tickets: Sequence[Ticket], now: int, ledger: Ledger | None = None
) -> list[tuple[Ticket, Demand]]:
    """Gives each ticket, best first, to the first worker with room that can run it."""
    if ledger is not None:
        return _assign_fitting(demands, tickets, now, ledger)
    if len(demands) == 1 and not any(ticket.excluded for ticket in tickets):
        only = demands[0]
        return [(ticket, only) for ticket in tickets[: only.want]]
    room = [demand.want for demand in demands]
    given: list[tuple[Ticket, Demand]] = []
    for ticket in tickets:
        for index, demand in enumerate(demands):
            if room[index] > 0 and demand.runs(ticket.shape) and _allows(ticket, demand, now):
                room[index] -= 1
                given.append((ticket, demand))
                break
    return given


def _assign_fitting(
    demands: Sequence[Demand], tickets: Sequence[Ticket], now: int, ledger: Ledger
) -> list[tuple[Ticket, Demand]]:
    """Does the same for workers that have free slots but may lack other room."""
    room = [demand.want for demand in demands]
    given: list[tuple[Ticket, Demand]] = []
    for shape, alike in groupby(tickets, key=_kind):
        waiting = list(alike)
        for index, demand in enumerate(demands):
            if not waiting:
                break
            if room[index] <= 0 or not demand.runs(shape[0]):
                continue
            allowed = waiting
            if shape[1] is not None:  # also equal in this respect
                allowed = [] if excludes(shape[1], demand.worker, now) else waiting
            most = min(room[index], len(allowed))
            most = min(most, ledger.room(demand.worker, shape[0])) if most else 0
            if most:
                ledger.take(demand.worker, shape[0], most)
                given += [(ticket, demand) for ticket in waiting[:most]]
                room[index] -= most
                waiting = waiting[most:]
    return given


def _kind(ticket: Ticket) -> tuple[int, str | None]:
    return ticket.shape, ticket.excluded


def excludes(excluded: str | None, worker: int, now: int) -> bool:
    """Returns True if this worker handed the job back and is not offered it again yet."""
    if excluded is None:
        return False
    return any(who == worker and until > now for who, until in json.loads(excluded))


def exclude(excluded: str | None, worker: int, until: int, now: int) -> str:
    """Adds a worker to the list and drops the entries that have expired."""
    listed = json.loads(excluded or "[]")
    suspected = [entry for entry in listed if entry[0] == COMPANY]
    kept = [(w, u) for w, u in listed if u > now and w not in (worker, COMPANY)]
    return json.dumps([*suspected, *kept[-7:], (worker, until)], separators=(",", ":"))


def _allows(ticket: Ticket, demand: Demand, now: int) -> bool:
    return not excludes(ticket.excluded, demand.worker, now)


def _place(ticket: Ticket) -> tuple[int, int]:
    return ticket.rank, ticket.job


def level_of(rank: int, now: int, interval_ms: int) -> int:
    """Returns the whole levels of a job's score, without its fraction of a level."""
    return (now - rank) // interval_ms


def last_of_level(level: int, now: int, interval_ms: int) -> int:
    """Returns the highest, that is least urgent, rank of this level."""
    return now - level * interval_ms


def in_turn(
    tickets: Sequence[Ticket],
    namespace: Callable[[int], str],
    running: Mapping[str, int],
    weights: Mapping[str, int],
    unfinished: Collection[int] = (),
) -> list[Ticket]:
    """Orders tickets of one level: each time the namespace with the least share per weight goes
    next.

    `namespace` returns the namespace of a shape. `unfinished` shapes have more jobs than these
    tickets, so the order stops at the last ticket of such a shape.
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
