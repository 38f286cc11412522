"""The places where open jobs wait: waits, due, parked, ready."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import Due, JobFacts, Ticket, Wait
from windlass.ports.store import Head, Probe
from windlass.store.postgres.columns import ascending, integers, spread
from windlass.store.postgres.session import Rows, Session

TICKET = "iiiiio"  # shape, rank, attempt, workflow, limit, excluded


class PostgresPlaces:
    """`PlacesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

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

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        if not ids:
            return {}
        rows = waits_of(await self._session.fetch("lock_waits", ascending(ids)))
        return {row.job: row for row in rows}

    async def waits(self, ids: Sequence[int]) -> dict[int, Wait]:
        if not ids:
            return {}
        rows = waits_of(await self._session.fetch("read_waits", ascending(ids)))
        return {row.job: row for row in rows}

    async def hold(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("hold_waits", ascending(ids))

    async def take_waits(self, ids: Sequence[int]) -> list[Wait]:
        return waits_of(await self._session.fetch("take_waits", ascending(ids))) if ids else []

    async def take_due(self, ids: Sequence[int]) -> list[Due]:
        return due_of(await self._session.fetch("take_due", ascending(ids))) if ids else []

    async def take_parked(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        if not facts:
            return []
        rows = sorted((fact.id, fact.limit, fact.shape, fact.rank) for fact in facts)
        columns = map(integers, zip(*rows, strict=True))
        return tickets_of(await self._session.fetch("take_parked", *columns))

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        if not facts:
            return []
        columns = zip(*sorted((fact.id, fact.shape, fact.rank) for fact in facts), strict=True)
        return tickets_of(await self._session.fetch("take_ready", *map(integers, columns)))

    async def pull_due(self, now: int, count: int) -> list[Due]:
        return due_of(await self._session.fetch("pull_due", now, count))

    async def next_due(self) -> int:
        at: int = await self._session.fetch_value("next_due")
        return at

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        if not probes:
            return []
        columns = map(integers, zip(*probes, strict=True))
        return tickets_of(await self._session.fetch("peek", *columns))

    async def ready(self, probes: Sequence[Probe]) -> list[Ticket]:
        if not probes:
            return []
        columns = map(integers, zip(*probes, strict=True))
        return tickets_of(await self._session.fetch("read_ready", *columns))

    async def park(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            shapes, ranks, jobs, *others, excluded = zip(*tickets, strict=True)
            columns = map(integers, (jobs, shapes, ranks, *others))
            await self._session.execute("park", *columns, excluded)

    async def heads(self) -> list[Head]:
        return list(map(Head._make, await self._session.fetch("heads")))

    async def count_ready(self, limit: int, shape: int) -> int:
        count: int = await self._session.fetch_value("count_ready", limit, shape)
        return count

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        return tickets_of(await self._session.fetch("best_parked", limit, count))

    async def worst_ready(self, limit: int, shape: int) -> Ticket | None:
        found = tickets_of(await self._session.fetch("worst_ready", limit, shape))
        return found[0] if found else None

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            rows = sorted((row.job, row.limit, row.shape, row.rank) for row in tickets)
            columns = zip(*rows, strict=True)
            await self._session.execute("unpark", *map(integers, columns))


def ticket_columns(tickets: Sequence[Ticket]) -> tuple[Sequence[int], list[Sequence[object]]]:
    """Returns the jobs, and the columns that `TICKET` names."""
    shapes, ranks, jobs, *others = zip(*tickets, strict=True)
    return jobs, [shapes, ranks, *others]


def tickets_of(rows: Rows) -> list[Ticket]:
    return list(map(Ticket._make, rows))


def waits_of(rows: Rows) -> list[Wait]:
    return [
        Wait(job, unmet, manual, not_before, age_from, Ticket(shape, rank, job, *others))
        for job, unmet, manual, not_before, age_from, shape, rank, *others in rows
    ]


def due_of(rows: Rows) -> list[Due]:
    return [
        Due(at, job, state, Ticket(shape, rank, job, *others))
        for at, job, state, shape, rank, *others in rows
    ]
