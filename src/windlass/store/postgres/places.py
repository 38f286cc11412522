"""The places of open jobs: waits, due, parked, ready, and leases."""

from collections.abc import Mapping, Sequence

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Due, Lease, Ticket, Wait
from windlass.domain.values.ids import next_attempt
from windlass.messages.sync import Assignment
from windlass.store.postgres.session import integers, spread
from windlass.store.sql.leases import Leases
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


class PostgresLeases(Leases):
    """Implements `Leases` on PostgreSQL."""

    __slots__ = ()

    async def newer(self, than: Mapping[int, int]) -> list[Lease]:
        if not than:
            return []
        pairs = integers(list(than)), integers(list(than.values()))
        return await self._session.rows(Lease, "newer_leases", *pairs)

    async def grant(
        self,
        given: Sequence[tuple[Ticket, Demand]],
        state: int,
        now: int,
        slack_ms: int,
        least_attempt: int = 0,
    ) -> list[Assignment]:
        if not given:
            return []
        tickets, demands = zip(*given, strict=True)
        shapes, ranks, jobs, past, _, limits, _ = zip(*tickets, strict=True)
        workers, incarnations, *_ = zip(*demands, strict=True)
        attempts = [attempt + 1 for attempt in past]
        if least_attempt:
            attempts = [next_attempt(attempt, least_attempt) for attempt in past]
        args = spread("iiiiii", [attempts, workers, incarnations, shapes, ranks, limits])
        arrays, scalars = args[:6], args[6:]
        rows = await self._session.fetch(
            "grant", integers(jobs), *arrays, state, now, *scalars, slack_ms
        )
        name, raw = str(STATE_BY_CODE[state]), msgspec.Raw
        return [
            Assignment(
                job, attempt, lease, name, timeout_ms, idle_ms, raw(spec), handed_back=handed_back
            )
            for job, attempt, lease, timeout_ms, idle_ms, spec, handed_back in rows
        ]
