"""The places where open jobs wait: waits, due, parked, ready."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from windlass.domain.rows.records import Due, JobFacts, Ticket, Wait
from windlass.store.sql.session import Role, maker, query


class Probe(NamedTuple):
    """Asks for at most `most` ready jobs of `shape` from (rank, job) upward."""

    shape: int
    rank: int
    job: int
    most: int


class Head(NamedTuple):
    """The best ready job of a shape."""

    shape: int
    rank: int
    job: int


class Places(Role, ABC):
    """The places where open jobs wait: waits, due, parked, ready.

    Removed rows are returned ascending by job.
    """

    __slots__ = ()

    async def waits(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Returns these jobs' rows in `waits`, not locked; jobs that do not wait are absent."""
        return await self._waits("read_waits", ids)

    async def _waits(self, query: str, ids: Sequence[int]) -> dict[int, Wait]:
        if not ids:
            return {}
        rows = waits_of(await self._session.fetch(query, self._session.ids(ids)))
        return {row.job: row for row in rows}

    next_due = query("next_due").number()
    """Returns the earliest `at` in `due`, or 0 if it is empty."""

    async def ready(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Returns ready jobs of each probe, not locked; ascending by (rank, job) within a shape."""
        return tickets_of(await self._session.fetch_many("read_ready", "iiii", probes))

    heads = query("heads").rows(Head)
    """Returns the best ready job of every shape that has one."""

    count_ready = query("count_ready", int, int).number()
    """Returns how many jobs of this limit and shape are in `ready`."""

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Locks and reads these jobs' rows in `waits`."""
        return await self._waits("lock_waits", ids)

    async def hold(self, ids: Sequence[int]) -> None:
        """Locks these jobs' rows in `waits`, ascending, and returns nothing."""
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
        """Removes these jobs from `parked`, where they are sorted by limit, shape and rank."""
        places = sorted((fact.id, fact.limit, fact.shape, fact.rank) for fact in facts)
        return tickets_of(await self._session.fetch_many("take_parked", "iiii", places))

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        """Removes these jobs from `ready`, where they are sorted by shape and rank."""
        places = sorted((fact.id, fact.shape, fact.rank) for fact in facts)
        return tickets_of(await self._session.fetch_many("take_ready", "iii", places))

    worst_ready = query("worst_ready", int, int).row(Ticket)
    """Locks and reads the last ready job under this limit; skips locked ones."""

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        """Removes exactly these rows from `parked`."""
        places = sorted((row.job, row.limit, row.shape, row.rank) for row in tickets)
        await self._session.many("unpark", "iiii", places)

    @abstractmethod
    async def add_ready(self, tickets: Sequence[Ticket]) -> None: ...

    @abstractmethod
    async def add_waits(self, rows: Sequence[Wait]) -> None: ...

    @abstractmethod
    async def add_due(self, rows: Sequence[Due]) -> None: ...

    @abstractmethod
    async def add_parked(self, tickets: Sequence[Ticket]) -> None: ...

    @abstractmethod
    async def meet(self, met: Mapping[int, int], manual: bool = False) -> list[Wait]:
        """Lowers `unmet` of each waiting job by the given number, ascending by job.

        Those that reach 0 are removed and returned, ascending by job; with `manual` the manual
        condition is the one met. Jobs that do not wait are ignored.
        """

    @abstractmethod
    async def pull_due(self, now: int, count: int) -> list[Due]:
        """Removes and returns up to `count` entries with `at <= now`, earliest first.

        Skips entries that another transaction is moving.
        """

    @abstractmethod
    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Returns ready jobs of each probe, locked; ascending by (rank, job) within a shape.

        Skips jobs that another transaction holds.
        """

    @abstractmethod
    async def park(self, tickets: Sequence[Ticket]) -> None:
        """Moves jobs that `peek` has locked from `ready` to `parked`."""

    @abstractmethod
    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        """Locks and reads the best `count` parked jobs of each shape under this limit.

        Skips rows that another transaction holds: waiting here, with the limit locked, could end in
        a deadlock.
        """


def tickets_of(rows: Iterable[Any]) -> list[Ticket]:
    return list(map(maker(Ticket), rows))


def waits_of(rows: Iterable[Any]) -> list[Wait]:
    """Makes them from rows that end with the ticket's columns, without its job."""
    return [
        Wait(job, unmet, manual, not_before, age_from, Ticket(shape, rank, job, *others))
        for job, unmet, manual, not_before, age_from, shape, rank, *others in rows
    ]


def due_of(rows: Iterable[Any]) -> list[Due]:
    """Makes them from rows that end with the ticket's columns, without its job."""
    return [
        Due(at, job, state, Ticket(shape, rank, job, *others))
        for at, job, state, shape, rank, *others in rows
    ]
