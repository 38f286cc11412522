"""The role that keeps the places where open jobs wait."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from windlass.domain.rows.records import (
    Due,
    JobFacts,
    Ticket,
    Wait,
)


class Probe(NamedTuple):
    """Look for at most `most` ready jobs of `shape` from (rank, job) upward."""

    shape: int
    rank: int
    job: int
    most: int


class Head(NamedTuple):
    """The best ready job of a shape."""

    shape: int
    rank: int
    job: int


class PlacesRead(Protocol):
    """Reads: the places where open jobs wait: waits, due, parked, ready."""

    async def next_due(self) -> int:
        """Returns the earliest `at` in `due`, or 0 if it is empty."""
        ...

    async def heads(self) -> list[Head]:
        """Returns the best ready job of every shape that has one."""
        ...

    async def count_ready(self, limit: int, shape: int) -> int:
        """Returns how many jobs of this limit and shape stand in `ready`."""
        ...

    async def waits(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Returns these jobs' rows in `waits`, not locked; jobs that do not wait are absent."""
        ...

    async def ready(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Returns ready jobs of each probe, not locked; ascending by (rank, job) within a shape."""
        ...


class PlacesWrite(PlacesRead, Protocol):
    """The places where open jobs wait: waits, due, parked, ready."""

    async def add_ready(self, tickets: Sequence[Ticket]) -> None: ...

    async def add_waits(self, rows: Sequence[Wait]) -> None: ...

    async def add_due(self, rows: Sequence[Due]) -> None: ...

    async def add_parked(self, tickets: Sequence[Ticket]) -> None: ...

    async def meet(self, met: Mapping[int, int], manual: bool = False) -> list[Wait]:
        """Lowers `unmet` of each waiting job by the given number, ascending by job.

        Those that reach 0 are removed and returned, ascending by job; with `manual` the
        manual condition is the one met. Jobs that do not wait are passed over.
        """
        ...

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Locks and reads these jobs' rows in `waits`."""
        ...

    async def hold(self, ids: Sequence[int]) -> None:
        """Locks these jobs' rows in `waits`, ascending, and returns nothing."""
        ...

    async def take_waits(self, ids: Sequence[int]) -> list[Wait]: ...

    async def take_due(self, ids: Sequence[int]) -> list[Due]: ...

    async def take_parked(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        """Removes these jobs from `parked`, where they stand by limit, shape and rank."""
        ...

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        """Removes these jobs from `ready`, where they stand by shape and rank."""
        ...

    async def pull_due(self, now: int, count: int) -> list[Due]:
        """Removes and returns up to `count` entries with `at <= now`, earliest first.

        Entries another transaction is moving are passed over.
        """
        ...

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Returns ready jobs of each probe, locked; ascending by (rank, job) within a shape.

        Jobs another transaction holds are passed over.
        """
        ...

    async def park(self, tickets: Sequence[Ticket]) -> None:
        """Moves jobs that `peek` has locked from `ready` to `parked`."""
        ...

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        """Locks and reads the best `count` parked jobs of each shape under this limit.

        Rows another transaction holds are passed over: waiting for one here, with the
        limit locked, could end in a deadlock.
        """
        ...

    async def worst_ready(self, limit: int, shape: int) -> Ticket | None:
        """Locks and reads the last ready job under this limit; skips locked ones."""
        ...

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        """Removes exactly these rows from `parked`."""
        ...
