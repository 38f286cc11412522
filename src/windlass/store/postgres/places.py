"""The places where open jobs wait: waits, due, parked, ready."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import Due, Ticket, Wait
from windlass.store.postgres.columns import integers, spread
from windlass.store.sql.places import Places, Probe, due_of, tickets_of, waits_of

TICKET = "iiiiio"  # shape, rank, attempt, workflow, limit, excluded


class PostgresPlaces(Places):
    """Implements `Places` on PostgreSQL."""

    __slots__ = ()

    async def add_ready(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            jobs, columns = ticket_columns(tickets)
            await self._session.execute("add_ready", integers(jobs), *spread(TICKET, columns))

    async def add_parked(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            jobs, columns = ticket_columns(tickets)
            await self._session.execute("add_parked", integers(jobs), *spread(TICKET, columns))

    async def add_waits(self, rows: Sequence[Wait]) -> None:
        if rows:
            _, *own, tickets = zip(*rows, strict=True)
            jobs, columns = ticket_columns(tickets)
            args = spread(TICKET + "iiii", [*columns, *own])
            await self._session.execute("add_waits", integers(jobs), *args)

    async def add_due(self, rows: Sequence[Due]) -> None:
        if rows:
            times, _, states, tickets = zip(*rows, strict=True)
            jobs, columns = ticket_columns(tickets)
            args = spread(TICKET + "ii", [*columns, times, states])
            await self._session.execute("add_due", integers(jobs), *args)

    async def meet(self, met: Mapping[int, int], manual: bool = False) -> list[Wait]:
        if not met:
            return []
        jobs, numbers = zip(*sorted(met.items()), strict=True)
        return waits_of(
            await self._session.fetch("meet", integers(jobs), integers(numbers), manual)
        )

    async def pull_due(self, now: int, count: int) -> list[Due]:
        return due_of(await self._session.fetch("pull_due", now, count))

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        if not probes:
            return []
        columns = map(integers, zip(*probes, strict=True))
        return tickets_of(await self._session.fetch("peek", *columns))

    async def park(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            shapes, ranks, jobs, *others, excluded = zip(*tickets, strict=True)
            columns = map(integers, (jobs, shapes, ranks, *others))
            await self._session.execute("park", *columns, excluded)

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        return tickets_of(await self._session.fetch("best_parked", limit, count))


def ticket_columns(tickets: Sequence[Ticket]) -> tuple[Sequence[int], list[Sequence[object]]]:
    """Returns the jobs, and the columns that `TICKET` names."""
    shapes, ranks, jobs, *others = zip(*tickets, strict=True)
    return jobs, [shapes, ranks, *others]
