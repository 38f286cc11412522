"""Keeps rows of `jobs`, their attempts, dependents and keys."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import (
    Attempt,
    Dependents,
    JobColumns,
    JobEnd,
    JobFacts,
    JobRecord,
    JobTry,
    KeyRow,
    Lease,
    NewJob,
)
from windlass.domain.values.ids import AttemptNo, JobId
from windlass.store.memory.tables import Tables
from windlass.wire.sync import Finished

COMPLETED = State.COMPLETED.code

CHUNK = 1_000


class MemoryJobs:
    """`JobsWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._jobs = tables.jobs

    async def allocate(self, count: int) -> Sequence[int]:
        return self._tables.number("job", count)

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        for row in map(NewJob._make, rows):
            self._jobs.insert(row.id, new_record(row))
            if row.workflow is not None:
                self._tables.grouped.insert((row.workflow, row.id), (row.workflow, row.id))

    async def read(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return {row.facts.id: row.facts for row in self._known(ids)}

    async def lock(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self.read(ids)

    async def hold(self, ids: Sequence[int]) -> None:
        """Transactions run one after another."""

    async def share(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self.read(ids)

    async def specs(self, ids: Sequence[int]) -> dict[int, bytes]:
        return {row.facts.id: row.spec for row in self._known(ids)}

    async def results(self, ids: Sequence[int]) -> dict[int, bytes]:
        rows = self._known(ids)
        return {row.facts.id: row.result for row in rows if row.result is not None}

    async def note_tries(self, rows: Sequence[JobTry]) -> None:
        for row in rows:
            self._change(row.job, partial(tried, row))

    async def end(self, rows: Sequence[JobEnd]) -> None:
        for row in rows:
            record = self._jobs.get(row.job)
            if record is not None:
                self._jobs.put(row.job, ended_record(record, row))

    def complete(self, lease: Lease, item: Finished, now: int) -> None:
        """Writes the end of a job whose attempt completed."""
        record = self._jobs[lease.job]
        facts = record.facts._replace(
            state=COMPLETED,
            attempt=lease.attempt,
            worker=lease.worker,
            incarnation=lease.incarnation,
        )
        ended = JobRecord(
            facts=facts,
            assigned_at=lease.assigned_at,
            started_at=lease.started_at,
            finished_at=now,
            failure=0,
            exit_code=item.exit_code,
            message=None,
            reason=None,
            result=item.result,
            spec=record.spec,
        )
        self._jobs.put(lease.job, ended)

    async def record_attempts(self, rows: Sequence[Attempt]) -> None:
        for row in rows:
            self._tables.attempts.insert((row.job, row.number), row)

    async def attempts(self, ids: Sequence[int]) -> dict[int, list[Attempt]]:
        found = {job: self._tables.attempts.between((job,), (job + 1,)) for job in sorted(ids)}
        return {job: rows for job, rows in found.items() if rows}

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        self._change(
            job,
            lambda facts: facts._replace(
                adjustment=adjustment,
                age_from=age_from,
                rank=rank,
                flags=flags if facts.is_open else facts.flags,
            ),
        )

    async def set_timeouts(self, rows: Sequence[tuple[int, int | None]]) -> None:
        for job, timeout_ms in rows:
            self._change(job, partial(JobFacts._replace, timeout_ms=timeout_ms))

    async def set_superseded(self, old: int, new: int) -> None:
        self._change(old, lambda facts: facts._replace(superseded_by=JobId(new)))

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        for job, more in edges.items():
            if more:
                self._append_edges(job, tuple(more))

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await self.add_dependents(edges)

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        rows = (self._tables.dependents.get((job, chunk)) for job in sorted(ids))
        return {row.job: row.edges for row in rows if row is not None}

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        for row in rows:
            if (row.namespace, row.key) not in self._tables.keys:
                self._tables.keys.insert((row.namespace, row.key), row)
        names = [(row.namespace, row.key) for row in rows]
        return {name: self._tables.keys[name] for name in names}

    async def retake_keys(
        self, rows: Sequence[KeyRow], instead_of: Sequence[int]
    ) -> dict[tuple[str, str], KeyRow]:
        keys = self._tables.keys
        for row, old in zip(rows, instead_of, strict=True):
            standing = keys.get((row.namespace, row.key))
            if standing is not None and standing.job == old:
                keys.put((row.namespace, row.key), row)
        found = (keys.get((row.namespace, row.key)) for row in rows)
        return {(row.namespace, row.key): row for row in found if row is not None}

    def _known(self, ids: Sequence[int]) -> list[JobRecord]:
        return [self._jobs[job] for job in sorted(ids) if job in self._jobs]

    def _change(self, job: int, change: Callable[[JobFacts], JobFacts]) -> None:
        record = self._jobs.get(job)
        if record is not None:
            self._jobs.put(job, JobRecord(change(record.facts), *record[1:]))

    def _append_edges(self, job: int, edges: tuple[int, ...]) -> None:
        """Fills the last chunk of the job's list before beginning another."""
        chunks = self._tables.dependents.between((job,), (job + 1,))
        last = chunks[-1] if chunks else Dependents(JobId(job), 0, ())
        edges = last.edges + edges
        for start in range(0, len(edges), CHUNK):
            number = last.chunk + start // CHUNK
            row = Dependents(JobId(job), number, edges[start : start + CHUNK])
            self._tables.dependents.put((job, number), row)


def new_record(row: NewJob) -> JobRecord:
    """Returns the row of a job that was just submitted."""
    facts = JobFacts(
        id=row.id,
        shape=row.shape,
        workflow=row.workflow,
        state=None,
        flags=row.flags,
        rank=row.rank,
        base=row.base,
        adjustment=row.adjustment,
        age_from=row.age_from,
        created_at=row.created_at,
        limit=row.limit,
        timeout_ms=row.timeout_ms,
        idle_ms=row.idle_ms,
        supersedes=row.supersedes,
        superseded_by=None,
        attempt=AttemptNo(0),
        failed=0,
        lost=0,
        returned=0,
        handed_back=0,
        worker=None,
        incarnation=None,
        excluded=None,
    )
    return JobRecord(facts, None, None, None, 0, None, None, None, None, row.spec)


def tried(row: JobTry, facts: JobFacts) -> JobFacts:
    """Returns what decisions need to know of a job after an attempt that did not end it."""
    return facts._replace(
        attempt=row.attempt,
        failed=row.failed,
        lost=row.lost,
        returned=row.returned,
        handed_back=row.handed_back,
        excluded=row.excluded,
    )


def ended_record(record: JobRecord, end: JobEnd) -> JobRecord:
    """Returns the row of a job that reached a terminal state."""
    facts = record.facts._replace(
        state=end.state,
        flags=end.flags,
        attempt=end.attempt,
        failed=end.failed,
        lost=end.lost,
        worker=end.worker,
        incarnation=end.incarnation,
    )
    return JobRecord(
        facts=facts,
        assigned_at=end.assigned_at,
        started_at=end.started_at,
        finished_at=end.finished_at,
        failure=end.failure,
        exit_code=end.exit_code,
        message=end.message,
        reason=end.reason,
        result=end.result,
        spec=record.spec,
    )
