"""The role of a transaction that removes what is no longer kept."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.records import JobRecord


class Ended(NamedTuple):
    """An ended job, as retention judges it."""

    job: int
    shape: int
    workflow: int | None
    finished_at: int


class RetentionRead(Protocol):
    """Reads: removal of old jobs, and of events behind a baseline."""

    async def ended(self, after: int, created_before: int, count: int) -> tuple[list[Ended], int]:
        """Returns the ended ones of the `count` jobs after id `after`, and where to continue.

        Ids rise with time, so the walk stops (0) at the first job that was created at
        `created_before` or later.
        """
        ...

    async def records(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns the whole rows of these jobs, ascending; unknown ids are absent."""
        ...

    async def baseline(self, kind: int, ids: Sequence[int]) -> list[BaselineRow]:
        """Returns the rows of this kind, ascending; unknown ids are absent."""
        ...


class RetentionWrite(RetentionRead, Protocol):
    """Removal of old jobs, and of events behind a baseline."""

    async def try_lock(self) -> bool:
        """Returns whether nobody else removes anything until this transaction ends."""
        ...

    async def remove_jobs(self, ids: Sequence[int]) -> None:
        """Removes every row of these jobs, which the caller has locked.

        What the log and its baseline know of them stays, until both are trimmed.
        """
        ...

    async def remove_workflows(self, ids: Sequence[int]) -> None:
        """Removes those of these workflows that have no job left, from the baseline too."""
        ...

    async def put_baseline(self, rows: Sequence[BaselineRow]) -> None:
        """Writes rows, new or changed."""
        ...

    async def drop_baseline(self, kind: int, ids: Sequence[int]) -> None: ...

    async def trim_events(self, up_to: int) -> int:
        """Removes the events numbered up to here, but never the newest; returns how many."""
        ...

    async def forget_commits(self) -> None:
        """Removes what the store itself keeps to know what became of lost answers, if it is old."""
        ...
