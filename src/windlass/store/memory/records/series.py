"""Rows of `series`."""

from collections import Counter
from collections.abc import Mapping, Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.pools.pools import Lifecycle
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.series import MINUTE, Move, SeriesKey, SeriesKind, SeriesRow
from windlass.ports.store.records.series import CompletedOn, Completions, Moved
from windlass.store.job_filters import ACTIVE_CODES
from windlass.store.memory.tables import Tables

POSITION = "series_seq"


class MemorySeries:
    """`SeriesWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def position(self) -> int:
        known = self._tables.meta.get(POSITION)
        return 0 if known is None else known[1]

    async def moves(self, after: int, before: int, count: int) -> Moved:
        events = self._tables.events.between((after + 1,), None, count)
        upto = max((event.seq for event in events if event.at <= before), default=after)
        found = (e for e in events if e.seq <= upto and e.kind == EventKind.JOB)
        return Moved(upto, [self._move(event) for event in found])

    def _move(self, event: Event) -> Move:
        row = self._tables.jobs.get(event.job)
        tried = self._tables.attempts.get((event.job, event.attempt))
        started_at, failure = None, 0
        if tried is not None:
            started_at, failure = tried.started_at, tried.failure
        if row is not None and row.facts.state is not None and row.facts.attempt == event.attempt:
            started_at = row.started_at if started_at is None else started_at
            failure = row.failure if tried is None else failure
        age_from = event.at if row is None else row.facts.age_from
        shape = self._shape(event.job)
        return Move(
            event.seq, event.at, event.source, event.to, event.attempt, shape, age_from, started_at,
            failure,
        )  # fmt: skip

    def _shape(self, job: int) -> int | None:
        row = self._tables.jobs.get(job)
        if row is not None:
            return row.facts.shape
        gone = self._rows(SeriesKind.GONE, 0, job, job + 1)
        return int(gone[0].name) if gone else None

    def _rows(self, kind: int, step: int, start: int, end: int) -> list[SeriesRow]:
        return sorted(
            row
            for row in self._tables.series
            if row.kind == kind and row.step == step and start <= row.at < end
        )

    async def moved(
        self, after: int, upto: int, most: int
    ) -> list[tuple[int, int, int, int]] | None:
        if upto - after > most:
            return None
        events = self._tables.events.between((after + 1,), (upto + 1,))
        found: Counter[tuple[int, int, int]] = Counter()
        for event in events:
            shape = self._shape(event.job) if event.kind == EventKind.JOB else None
            if shape is not None:
                found[shape, event.source, event.to] += 1
        return [(*key, count) for key, count in sorted(found.items())]

    async def held_since(self, after: int, upto: int, most: int) -> dict[int, int] | None:
        if upto - after > most:
            return None
        found: Counter[int] = Counter()
        for event in self._tables.events.between((after + 1,), (upto + 1,)):
            enters = event.to in ACTIVE_CODES and event.source not in ACTIVE_CODES
            leaves = event.source in ACTIVE_CODES and event.to not in ACTIVE_CODES
            if event.kind == EventKind.JOB and (enters or leaves):
                found[event.worker] += enters - leaves
        return dict(sorted(found.items()))

    async def completed_on(self, after: int, since: int) -> Completions:
        looked = self._tables.events.between((after + 1,), None)
        found: dict[tuple[int, int, int], tuple[int, int]] = {}
        for event in looked:
            job = self._tables.jobs.get(event.job)
            completed = event.kind == EventKind.JOB and event.to == State.COMPLETED.code
            if job is not None and completed and event.at >= since:
                key = event.worker, job.facts.shape, event.at // MINUTE
                last_at, jobs = found.get(key, (0, 0))
                found[key] = max(last_at, event.at), jobs + 1
        rows = [CompletedOn(key[0], key[1], *found[key]) for key in sorted(found)]
        return Completions(looked[0].at if looked else 0, rows)

    async def between(
        self, kinds: Sequence[int], step: int, start: int, end: int
    ) -> list[SeriesRow]:
        return [row for kind in kinds for row in self._rows(kind, step, start, end)]

    async def last(self, kind: int, step: int, before: int) -> SeriesRow | None:
        found = self._rows(kind, step, 0, before)
        return found[-1] if found else None

    async def workers_by_status(self) -> Mapping[int, int]:
        found = Counter(row.status for row in self._tables.workers)
        return dict(sorted(found.items()))

    async def pool_workers_by_state(self) -> list[tuple[str, int, int]]:
        names = {row.id: row.name for row in self._tables.pools}
        found = Counter(
            (names[row.pool], row.state)
            for row in self._tables.pool_workers
            if row.state < Lifecycle.GONE and row.pool in names
        )
        return [(*key, count) for key, count in sorted(found.items())]

    async def move_on(self, source: int, to: int) -> bool:
        known = self._tables.meta.get(POSITION)
        if known is not None and known[1] != source:
            return False
        self._tables.meta.put(POSITION, (POSITION, to))
        return True

    async def put(self, rows: Sequence[SeriesRow]) -> None:
        for row in rows:
            self._tables.series.put(SeriesKey(*row[:5]), row)

    async def trim(self, kind: int, step: int, before: int, count: int) -> int:
        rows = self._rows(kind, step, 0, before)[:count]
        for row in rows:
            self._tables.series.pop(SeriesKey(*row[:5]))
        return len(rows)
