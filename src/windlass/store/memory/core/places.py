"""The places where open jobs wait: waits, due, parked, ready."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import Due, JobFacts, Ticket, Wait
from windlass.ports.store import Head, Probe
from windlass.store.memory.table import Order, after
from windlass.store.memory.tables import Tables


class MemoryPlaces:
    """`PlacesWrite` over the tables. What is taken comes back ascending by job."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._waits = tables.waits
        self._due = tables.due
        self._parked = tables.parked
        self._ready = tables.ready

    async def add_ready(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            add_ready(self._tables, ticket)

    async def add_waits(self, rows: Sequence[Wait]) -> None:
        for row in rows:
            self._waits.insert(row.job, row)

    async def add_due(self, rows: Sequence[Due]) -> None:
        for row in rows:
            self._due.insert(row.job, row)

    async def add_parked(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            place = (ticket.known_limit, ticket.shape, ticket.rank, ticket.job)
            self._parked.insert(place, ticket)

    async def meet(self, met: Mapping[int, int], manual: bool = False) -> list[Wait]:
        freed = []
        for job, number in sorted(met.items()):
            row = self._waits.get(job)
            # A manual condition is met once: a second time there is none left to meet.
            if row is None or (manual and not row.manual):
                continue
            row = row._replace(unmet=row.unmet - number, manual=0 if manual else row.manual)
            if row.unmet > 0:
                self._waits.put(job, row)
            else:
                self._waits.pop(job)
                freed.append(row)
        return freed

    async def waits(self, ids: Sequence[int]) -> dict[int, Wait]:
        return {job: self._waits[job] for job in sorted(ids) if job in self._waits}

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.waits(ids)

    async def hold(self, ids: Sequence[int]) -> None:
        """Transactions run one after another."""

    async def take_waits(self, ids: Sequence[int]) -> list[Wait]:
        taken = (self._waits.pop(job) for job in sorted(ids))
        return [row for row in taken if row is not None]

    async def take_due(self, ids: Sequence[int]) -> list[Due]:
        taken = (self._due.pop(job) for job in sorted(ids))
        return [row for row in taken if row is not None]

    async def take_parked(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        places = (
            (fact.limit, fact.shape, fact.rank, fact.id)
            for fact in sorted(facts)
            if fact.limit is not None
        )
        taken = (self._parked.pop(place) for place in places)
        return [ticket for ticket in taken if ticket is not None]

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        places = ((fact.shape, fact.rank, fact.id) for fact in sorted(facts))
        taken = (take_ready(self._tables, place) for place in places)
        return [ticket for ticket in taken if ticket is not None]

    async def pull_due(self, now: int, count: int) -> list[Due]:
        rows = self._due.between((), (now + 1,), count)
        for row in rows:
            self._due.pop(row.job)
        return rows

    async def next_due(self) -> int:
        first = self._due.between((), None, 1)
        return first[0].at if first else 0

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.ready(probes)

    async def ready(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Answers each probe by itself: two that overlap find the same job twice."""
        found: list[Ticket] = []
        for probe in probes:
            low = (probe.shape, probe.rank, probe.job)
            found += self._ready.between(low, (probe.shape + 1,), probe.most)
        return found

    async def park(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            pick_ready(self._tables, ticket)
        await self.add_parked(tickets)

    async def heads(self) -> list[Head]:
        shapes = self._ready.prefixes(1)
        best = [self._ready.between(shape, None, 1)[0] for shape in shapes]
        return [Head(ticket.shape, ticket.rank, ticket.job) for ticket in best]

    async def count_ready(self, limit: int, shape: int) -> int:
        return self._tables.ready_counts.get((limit, shape)) or 0

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        shapes = self._parked.prefixes(2, below=(limit,))
        best = [self._parked.between(shape, after(shape), count) for shape in shapes]
        return [ticket for tickets in best for ticket in tickets]

    async def worst_ready(self, limit: int, shape: int) -> Ticket | None:
        alike = self._ready.between((shape,), (shape + 1,))
        return max((ticket for ticket in alike if ticket.limit == limit), default=None)

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            self._parked.pop((ticket.known_limit, ticket.shape, ticket.rank, ticket.job))


def add_ready(tables: Tables, ticket: Ticket) -> None:
    """Puts a job into `ready`, and count it under its limit."""
    tables.ready.insert((ticket.shape, ticket.rank, ticket.job), ticket)
    _count(tables, ticket, 1)


def take_ready(tables: Tables, place: Order) -> Ticket | None:
    """Removes the job at (shape, rank, job) from `ready`, if it stands there."""
    ticket = tables.ready.pop(place)
    if ticket is not None:
        _count(tables, ticket, -1)
    return ticket


def pick_ready(tables: Tables, ticket: Ticket) -> None:
    """Removes a job that `peek` has found and locked, so that it must be there."""
    if take_ready(tables, (ticket.shape, ticket.rank, ticket.job)) is None:
        raise LookupError(f"expected a ready job, got {ticket}")


def _count(tables: Tables, ticket: Ticket, delta: int) -> None:
    if ticket.limit is None:
        return
    place = (ticket.limit, ticket.shape)
    tables.ready_counts.put(place, (tables.ready_counts.get(place) or 0) + delta)
