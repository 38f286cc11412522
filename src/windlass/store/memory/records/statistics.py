"""Rows of `statistics`, `usage` and `deadlines`."""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.ports.store.records.statistics import Looked, Taken
from windlass.store.memory.tables import Tables

POSITION = "statistics_seq"
COMPLETED = State.COMPLETED.code


class MemoryStatistics:
    """`StatisticsWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def completed(self, after: int, before: int, count: int) -> Looked:
        events = self._tables.events.between((after + 1,), None, count)
        upto = max((event.seq for event in events if event.at <= before), default=after)
        taken: list[Taken] = []
        for event in events:
            job = self._tables.jobs.get(event.job)
            done = event.kind == EventKind.JOB and event.to == COMPLETED
            if not done or event.seq > upto or job is None:
                continue
            if job.started_at is not None and job.finished_at is not None:
                used = self._tables.usage.get(event.job)
                peak = used.peak_memory if used and used.attempt == event.attempt else 0
                run_ms = job.finished_at - job.started_at
                taken.append(Taken(job.facts.shape, run_ms, peak, job.spec))
        return Looked(upto, taken)

    async def move_on(self, source: int, to: int) -> bool:
        known = self._tables.meta.get(POSITION)
        if known is not None and known[1] != source:
            return False
        self._tables.meta.put(POSITION, (POSITION, to))
        return True

    async def position(self) -> int:
        known = self._tables.meta.get(POSITION)
        return 0 if known is None else known[1]

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        wanted = set(kinds)
        return sorted(row for row in self._tables.statistics if row.of in wanted)

    async def put(self, rows: Sequence[StatisticsRow]) -> None:
        for row in rows:
            self._tables.statistics.put((*row.of, row.measure), row)

    async def forget(self, before: int, keep: int) -> int:
        rows = sorted(
            self._tables.statistics,
            key=lambda row: (-row.updated_at, *row.of, row.measure),
        )
        gone = [row for n, row in enumerate(rows) if n >= keep or row.updated_at < before]
        for row in gone:
            self._tables.statistics.pop((*row.of, row.measure))
        return len(gone)

    async def put_usage(self, row: Usage) -> None:
        self._tables.usage.put(row.job, row)

    async def usage(self, jobs: Sequence[int]) -> dict[int, Usage]:
        found = ((job, self._tables.usage.get(job)) for job in sorted(jobs))
        return {job: row for job, row in found if row is not None}


class MemoryDeadlines:
    """`DeadlinesWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._deadlines = tables.deadlines

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        for row in rows:
            self._deadlines.put(row, row)

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        return self._deadlines.between((), (now + 1,), count)

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None:
        for row in rows:
            self._deadlines.pop(row)
