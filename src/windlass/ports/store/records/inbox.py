"""The role of a transaction that keeps what users submitted in transactions of their own."""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.rows.records import InboxRow, JobAlias


class InboxRead(Protocol):
    """Reads rows of `inbox` and `job_aliases`."""

    async def waiting(self, after: int, count: int) -> list[InboxRow]:
        """Returns at most `count` rows above id `after`, ascending."""
        ...

    async def oldest(self) -> int | None:
        """Returns when the first row that still waits was submitted; None without one."""
        ...

    async def alias(self, job: int) -> int | None:
        """Returns the job that stands for this one, if its key was taken."""
        ...


class InboxWrite(InboxRead, Protocol):
    """Reads and writes rows of `inbox` and `job_aliases`."""

    async def put(self, rows: Sequence[InboxRow]) -> None:
        """Adds rows as users' transactions do, with fresh ids (the rows' own are ignored)."""
        ...

    async def take(self, ids: Sequence[int]) -> list[int]:
        """Removes rows and returns the ids of those that were there, ascending.

        Locks out other transactions that do the same, until the end of this one.
        """
        ...

    async def add_aliases(self, rows: Sequence[JobAlias]) -> None:
        """Adds aliases of jobs that have none."""
        ...

    async def trim_aliases(self, before: int, count: int) -> int:
        """Removes at most so many aliases from before this time; returns how many."""
        ...
