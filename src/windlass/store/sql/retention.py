"""Removal of old jobs, and of events behind a baseline."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.records import JobRecord
from windlass.ports.store.records.retention import Ended
from windlass.store.sql.jobs import records_of
from windlass.store.sql.session import Role


class Retention(Role):
    """`RetentionWrite`, but for what removes rows of many tables."""

    __slots__ = ()

    async def ended(self, after: int, created_before: int, count: int) -> tuple[list[Ended], int]:
        rows = await self._session.fetch("jobs_behind", after, count)
        return _judge(rows, created_before, count)

    async def records(self, ids: Sequence[int]) -> list[JobRecord]:
        if not ids:
            return []
        return records_of(await self._session.fetch("job_records", self._session.ids(ids)))

    async def baseline(self, kind: int, ids: Sequence[int]) -> list[BaselineRow]:
        if not ids:
            return []
        wanted = self._session.ids(ids)
        return await self._session.rows(BaselineRow, "baseline", int(kind), wanted)

    async def put_baseline(self, rows: Sequence[BaselineRow]) -> None:
        await self._session.many("put_baseline", "iio", rows)

    async def drop_baseline(self, kind: int, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("drop_baseline", int(kind), self._session.ids(ids))

    async def trim_events(self, up_to: int) -> int:
        return await self._session.execute("trim_events", up_to)


class _Passed(NamedTuple):
    """A job that the walk came by."""

    job: int
    shape: int
    workflow: int | None
    created_at: int
    state: int | None
    finished_at: int | None


def _judge(
    rows: Sequence[Iterable[Any]], created_before: int, count: int
) -> tuple[list[Ended], int]:
    """Returns the ended ones up to the first that is too young, and where to go on (0: nowhere)."""
    ended: list[Ended] = []
    last = 0
    for row in map(_Passed._make, rows):
        if row.created_at >= created_before:
            return ended, 0
        if row.finished_at is not None:
            ended.append(Ended(row.job, row.shape, row.workflow, row.finished_at))
        last = row.job
    return ended, last if len(rows) == count else 0
