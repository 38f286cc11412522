"""The places where open jobs wait: waits, due, parked, ready."""

from collections.abc import Iterable, Sequence
from typing import Any

from windlass.domain.rows.records import Due, JobFacts, Ticket, Wait
from windlass.ports.store import Head, Probe
from windlass.store.sql.session import Role, maker


class Places(Role):
    """`PlacesWrite`, but for what fills a place. What is taken comes back ascending by job."""

    __slots__ = ()

    async def waits(self, ids: Sequence[int]) -> dict[int, Wait]:
        return await self._waits("read_waits", ids)

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        return await self._waits("lock_waits", ids)

    async def _waits(self, query: str, ids: Sequence[int]) -> dict[int, Wait]:
        if not ids:
            return {}
        rows = waits_of(await self._session.fetch(query, self._session.ids(ids)))
        return {row.job: row for row in rows}

    async def hold(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.lock("hold_waits", self._session.ids(ids))

    async def take_waits(self, ids: Sequence[int]) -> list[Wait]:
        if not ids:
            return []
        rows = await self._session.fetch("take_waits", self._session.ids(ids))
        return sorted(waits_of(rows), key=lambda wait: wait.job)

    async def take_due(self, ids: Sequence[int]) -> list[Due]:
        if not ids:
            return []
        rows = await self._session.fetch("take_due", self._session.ids(ids))
        return sorted(due_of(rows), key=lambda due: due.job)

    async def take_parked(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        places = sorted((fact.id, fact.limit, fact.shape, fact.rank) for fact in facts)
        return tickets_of(await self._session.fetch_many("take_parked", "iiii", places))

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        places = sorted((fact.id, fact.shape, fact.rank) for fact in facts)
        return tickets_of(await self._session.fetch_many("take_ready", "iii", places))

    async def next_due(self) -> int:
        return int(await self._session.fetch_value("next_due"))

    async def ready(self, probes: Sequence[Probe]) -> list[Ticket]:
        return tickets_of(await self._session.fetch_many("read_ready", "iiii", probes))

    async def heads(self) -> list[Head]:
        return await self._session.rows(Head, "heads")

    async def count_ready(self, limit: int, shape: int) -> int:
        return int(await self._session.fetch_value("count_ready", limit, shape))

    async def worst_ready(self, limit: int, shape: int) -> Ticket | None:
        return await self._session.row(Ticket, "worst_ready", limit, shape)

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        places = sorted((row.job, row.limit, row.shape, row.rank) for row in tickets)
        await self._session.many("unpark", "iiii", places)


def tickets_of(rows: Iterable[Any]) -> list[Ticket]:
    return list(map(maker(Ticket), rows))


def waits_of(rows: Iterable[Any]) -> list[Wait]:
    """Returns them from rows that end with the ticket's columns, without its job."""
    return [
        Wait(job, unmet, manual, not_before, age_from, Ticket(shape, rank, job, *others))
        for job, unmet, manual, not_before, age_from, shape, rank, *others in rows
    ]


def due_of(rows: Iterable[Any]) -> list[Due]:
    """Returns them from rows that end with the ticket's columns, without its job."""
    return [
        Due(at, job, state, Ticket(shape, rank, job, *others))
        for at, job, state, shape, rank, *others in rows
    ]
