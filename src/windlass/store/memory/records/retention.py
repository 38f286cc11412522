"""Removal of old jobs, and of events behind a baseline."""

from collections.abc import Sequence

from windlass.domain.rows.events import BaselineKind, BaselineRow
from windlass.domain.rows.records import JobRecord
from windlass.ports.store.records.retention import Ended
from windlass.store.ended_jobs import judge_rows
from windlass.store.memory.tables import Tables


class MemoryRetention:
    """`RetentionWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def try_lock(self) -> bool:
        return True

    async def ended(self, after: int, created_before: int, count: int) -> tuple[list[Ended], int]:
        rows = sorted(
            (row for row in self._tables.jobs if row.facts.id > after),
            key=lambda row: row.facts.id,
        )
        passed = [
            (
                row.facts.id,
                row.facts.shape,
                row.facts.workflow,
                row.facts.created_at,
                row.facts.state,
                row.finished_at,
            )
            for row in rows[:count]
        ]
        return judge_rows(passed, created_before, count)

    async def remove_jobs(self, ids: Sequence[int]) -> None:
        tables = self._tables
        gone = set(ids)
        for job in ids:
            for attempt in tables.attempts.between((job,), (job + 1,)):
                tables.attempts.pop((job, attempt.number))
            for chunk in tables.dependents.between((job,), (job + 1,)):
                tables.dependents.pop((job, chunk.chunk))
            for log in tables.logs.between((job,), (job + 1,)):
                tables.logs.pop((job, log.attempt))
            row = tables.jobs.pop(job)
            if row is not None and row.facts.workflow is not None:
                tables.grouped.pop((row.facts.workflow, job))
            tables.artifacts.pop(job)
            tables.progress.pop(job)
            tables.dynamic.pop(job)
            tables.usage.pop(job)
            tables.steps.pop(job)
        for key in [row for row in tables.keys if row.job in gone]:
            tables.keys.pop((key.namespace, key.key))

    async def remove_workflows(self, ids: Sequence[int]) -> None:
        for workflow in ids:
            if not self._tables.grouped.between((workflow,), (workflow + 1,), 1):
                self._tables.workflows.pop(workflow)
                self._tables.workflow_about.pop(workflow)
                for row in [r for r in self._tables.workflow_keys if r[2] == workflow]:
                    self._tables.workflow_keys.pop(row[:2])
                self._tables.baseline.pop((BaselineKind.WORKFLOW, workflow))

    async def records(self, ids: Sequence[int]) -> list[JobRecord]:
        found = (self._tables.jobs.get(job) for job in sorted(set(ids)))
        return [row for row in found if row is not None]

    async def baseline(self, kind: int, ids: Sequence[int]) -> list[BaselineRow]:
        found = (self._tables.baseline.get((kind, number)) for number in sorted(set(ids)))
        return [row for row in found if row is not None]

    async def put_baseline(self, rows: Sequence[BaselineRow]) -> None:
        for row in rows:
            self._tables.baseline.put((row.kind, row.id), row)

    async def drop_baseline(self, kind: int, ids: Sequence[int]) -> None:
        for number in ids:
            self._tables.baseline.pop((kind, number))

    async def trim_events(self, up_to: int) -> int:
        events = self._tables.events.between((), (up_to + 1,))
        newest = self._tables.events.between((up_to + 1,), None, 1)
        kept = events if newest else events[:-1]
        for event in kept:
            self._tables.events.pop(event.seq)
        return len(kept)

    async def forget_commits(self) -> None:
        """It keeps none: no answer is lost."""
