"""Removal of old jobs, and of events behind a baseline."""

from collections.abc import Sequence

import apsw

from windlass.domain.rows.events import BaselineKind, BaselineRow
from windlass.domain.rows.records import JobRecord
from windlass.ports.store.records.retention import Ended
from windlass.store.ended_jobs import judge_rows
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import Row, as_baseline, as_record, integers
from windlass.store.sqlite.statements import QUERIES

_BASELINE = BulkInsert(QUERIES["put_baseline"])
_REMOVALS = (
    QUERIES["remove_jobs"],
    QUERIES["remove_outcomes"],
    QUERIES["remove_attempts"],
    QUERIES["remove_dependents"],
    QUERIES["remove_keys"],
    QUERIES["remove_logs"],
    QUERIES["remove_artifacts"],
    QUERIES["remove_progress"],
    QUERIES["remove_dynamic"],
    QUERIES["remove_usage"],
    QUERIES["remove_steps"],
)


class SqliteRetention:
    """`RetentionWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute

    async def try_lock(self) -> bool:
        """Always gets the turn: SQLite runs one transaction at a time."""
        return True

    async def ended(self, after: int, created_before: int, count: int) -> tuple[list[Ended], int]:
        rows: list[Row] = self._execute(QUERIES["jobs_behind"], (after, count)).fetchall()
        return judge_rows(rows, created_before, count)

    async def remove_jobs(self, ids: Sequence[int]) -> None:
        if not ids:
            return
        for removal in _REMOVALS:
            self._execute(removal, (integers(ids),))

    async def remove_workflows(self, ids: Sequence[int]) -> None:
        if not ids:
            return
        gone: list[Row] = self._execute(QUERIES["remove_workflows"], (integers(ids),)).fetchall()
        numbers = [workflow for (workflow,) in gone]
        if numbers:
            self._execute(QUERIES["remove_workflow_about"], (integers(numbers),))
            self._execute(QUERIES["remove_workflow_keys"], (integers(numbers),))
        await self.drop_baseline(BaselineKind.WORKFLOW, numbers)

    async def records(self, ids: Sequence[int]) -> list[JobRecord]:
        if not ids:
            return []
        wanted = integers(sorted(set(ids)))
        return list(map(as_record, self._execute(QUERIES["job_records"], (wanted,))))

    async def baseline(self, kind: int, ids: Sequence[int]) -> list[BaselineRow]:
        if not ids:
            return []
        wanted = integers(sorted(set(ids)))
        return list(map(as_baseline, self._execute(QUERIES["baseline"], (int(kind), wanted))))

    async def put_baseline(self, rows: Sequence[BaselineRow]) -> None:
        _BASELINE.run(self._connection, rows)

    async def drop_baseline(self, kind: int, ids: Sequence[int]) -> None:
        if ids:
            self._execute(QUERIES["drop_baseline"], (int(kind), integers(ids)))

    async def trim_events(self, up_to: int) -> int:
        self._execute(QUERIES["trim_events"], (up_to,))
        return self._connection.changes()

    async def forget_commits(self) -> None:
        """It keeps none: no answer is lost."""
