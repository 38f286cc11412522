"""Removes old jobs, and events before a baseline."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.records import JobRecord
from windlass.store.sql.jobs import records_of
from windlass.store.sql.session import Role, query


class Ended(NamedTuple):
    """An ended job, with the fields that retention looks at."""

    job: int
    shape: int
    workflow: int | None
    finished_at: int


class Retention(Role, ABC):
    """Removes old jobs, and events before a baseline."""

    __slots__ = ()

    async def ended(self, after: int, created_before: int, count: int) -> tuple[list[Ended], int]:
        """Returns the ended jobs among the `count` jobs after id `after`, and where to continue.

        Ids rise with time, so the walk stops (0) at the first job that was created at
        `created_before` or later.
        """
        rows = await self._session.fetch("jobs_behind", after, count)
        return _judge(rows, created_before, count)

    async def records(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns the whole rows of these jobs, ascending; unknown ids are absent."""
        if not ids:
            return []
        return records_of(await self._session.fetch("job_records", self._session.ids(ids)))

    async def baseline(self, kind: int, ids: Sequence[int]) -> list[BaselineRow]:
        """Returns the rows of this kind, ascending; unknown ids are absent."""
        if not ids:
            return []
        wanted = self._session.ids(ids)
        return await self._session.rows(BaselineRow, "baseline", int(kind), wanted)

    put_baseline = query("put_baseline").many("iio", BaselineRow)
    """Writes rows, new or changed."""

    async def drop_baseline(self, kind: int, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("drop_baseline", int(kind), self._session.ids(ids))

    trim_events = query("trim_events", int).count()
    """Removes the events up to this number, but never the newest; returns how many."""

    @abstractmethod
    async def try_lock(self) -> bool:
        """Returns True if this transaction is the only one that removes rows until it ends."""

    @abstractmethod
    async def remove_jobs(self, ids: Sequence[int], /) -> None:
        """Removes every row of these jobs, which the caller has locked.

        The log and its baseline keep their entries until they are trimmed.
        """

    @abstractmethod
    async def remove_workflows(self, ids: Sequence[int], /) -> None:
        """Removes the workflows that have no job left, from the baseline as well."""

    @abstractmethod
    async def forget_commits(self) -> None:
        """Removes old marks, by which the store finds out what became of lost answers."""


class _Passed(NamedTuple):
    """A job that the walk has read."""

    job: int
    shape: int
    workflow: int | None
    created_at: int
    state: int | None
    finished_at: int | None


def _judge(
    rows: Sequence[Iterable[Any]], created_before: int, count: int
) -> tuple[list[Ended], int]:
    """Returns the ended jobs up to the first that is too young, and where to continue (0:
    nowhere).
    """
    ended: list[Ended] = []
    last = 0
    for row in map(_Passed._make, rows):
        if row.created_at >= created_before:
            return ended, 0
        if row.finished_at is not None:
            ended.append(Ended(row.job, row.shape, row.workflow, row.finished_at))
        last = row.job
    return ended, last if len(rows) == count else 0
