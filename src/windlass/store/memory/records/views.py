"""What lists and pages show, read from the tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.files import ArtifactRow
from windlass.domain.rows.records import (
    Attempt,
    JobFacts,
    JobRecord,
    Lease,
    RateRow,
    ShapeRow,
    Worker,
)
from windlass.domain.rows.views import Census, FleetRow, JobMoment, Place, ReadySpan, WaitingJob
from windlass.store.job_filters import (
    BAD_CODES,
    BLOCKED,
    ENDED_CODES,
    QUEUED,
    Candidate,
    Source,
    Standing,
    text_of,
)
from windlass.store.job_search import JobText
from windlass.store.job_views import FilesOf, GatheredViews
from windlass.store.memory.core.jobs import MemoryJobs
from windlass.store.memory.core.leases import MemoryLeases
from windlass.store.memory.core.log import MemoryLog
from windlass.store.memory.records.files import MemoryFiles
from windlass.store.memory.tables import Tables


class MemoryViews(GatheredViews):
    """`ViewsRead` over the tables and the other roles."""

    def __init__(
        self,
        tables: Tables,
        jobs: MemoryJobs,
        leases: MemoryLeases,
        log: MemoryLog,
        files: MemoryFiles,
    ) -> None:
        self._tables = tables
        self._job_rows = jobs
        self._lease_rows = leases
        self._log = log
        self._files = files

    async def _scan(
        self, source: Source, below: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        ids = sorted((job for job in self._held(source, workflow) if job < below), reverse=True)
        return await self._light(ids[:count])

    async def _scan_up(
        self, source: Source, above: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        ids = sorted(job for job in self._held(source, workflow) if job > above)
        return await self._light(ids[:count])

    def _held(self, source: Source, workflow: int | None) -> Iterable[int]:
        tables = self._tables
        holds: dict[Source, Callable[[], Iterable[int]]] = {
            Source.JOBS: lambda: (row.facts.id for row in tables.jobs),
            Source.LEASES: lambda: (row.job for row in tables.leases),
            Source.WAITS: lambda: (row.job for row in tables.waits),
            Source.DUE: lambda: (row.job for row in tables.due if row.state != QUEUED),
            Source.BAD: lambda: (
                row.facts.id for row in tables.jobs if row.facts.state in BAD_CODES
            ),
            Source.WORKFLOW: lambda: (
                row.facts.id for row in tables.jobs if row.facts.workflow == workflow
            ),
        }
        return holds[source]()

    async def _leases_by_start(self, after: Place, count: int) -> list[Place]:
        found: Iterable[Place] = (
            (row.assigned_at if row.started_at is None else row.started_at, row.job)
            for row in self._tables.leases
        )
        return sorted(place for place in found if place > after)[:count]

    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        wanted = set(shapes)
        ready = self._tables.ready
        found: Iterable[Place] = ((row.rank, row.job) for row in ready if row.shape in wanted)
        return sorted(place for place in found if place > after)[:count]

    async def _ends_between(self, start: int, below: int, count: int) -> list[Place]:
        events = self._tables.events.between((start,), (below,))
        found = [
            (event.seq, event.job)
            for event in reversed(events)
            if event.kind == EventKind.JOB and event.to in ENDED_CODES
        ]
        return found[:count]

    async def _event_bounds(self) -> tuple[int, int]:
        first = self._tables.events.between((), None, 1)
        return (first[0].seq if first else 1), await self._log.newest()

    async def _event_time(self, number: int) -> int | None:
        found = self._tables.events.between((number,), None, 1)
        return found[0].at if found else None

    async def _created_up_to(self, job: int) -> int | None:
        ids = [row.facts.id for row in self._tables.jobs if row.facts.id <= job]
        found = self._tables.jobs.get(max(ids)) if ids else None
        return None if found is None else found.facts.created_at

    async def _newest_job(self) -> int:
        return max((row.facts.id for row in self._tables.jobs), default=0)

    async def _oldest_job(self) -> int:
        return min((row.facts.id for row in self._tables.jobs), default=0)

    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        facts = await self._job_rows.read(ids)
        return [Candidate(job, facts[job].shape, facts[job].state) for job in ids if job in facts]

    async def _few_queued(self, most: int) -> list[int] | None:
        tables = self._tables
        planned: Iterable[int] = (row.job for row in tables.due if row.state == QUEUED)
        places = (row.job for row in chain(tables.ready, tables.parked))
        found = list(islice(chain(planned, places), most + 1))
        return found if len(found) <= most else None

    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]:
        found = (self._tables.keys.get((namespace, key)) for namespace in namespaces)
        return [row.job for row in found if row is not None]

    async def _shapes(self) -> Iterable[ShapeRow]:
        return self._tables.shapes

    async def _specs(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        return await self._job_rows.specs(ids)

    async def _job_texts(self, ids: Sequence[int]) -> list[JobText]:
        return [text_of(record) for record in (await self._records(ids)).values()]

    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]:
        found = ((job, self._tables.jobs.get(job)) for job in ids)
        return {job: row for job, row in found if row is not None}

    async def _leases(self, ids: Sequence[int]) -> Mapping[int, Lease]:
        return await self._lease_rows.lock(ids)

    async def _standings(self, ids: Sequence[int]) -> Iterable[Standing]:
        found: list[Standing] = []
        for job in ids:
            wait, due = self._tables.waits.get(job), self._tables.due.get(job)
            if wait is not None:
                found.append(Standing(job, BLOCKED, wait.not_before))
            elif due is not None:
                found.append(Standing(job, due.state, due.at))
        return found

    async def moments(self, ids: Sequence[int]) -> list[JobMoment]:
        rows = (self._tables.jobs.get(job) for job in sorted(ids))
        return [self._moment(row) for row in rows if row is not None]

    def _moment(self, row: JobRecord) -> JobMoment:
        facts, job = row.facts, row.facts.id
        lease, wait = self._tables.leases.get(job), self._tables.waits.get(job)
        due = self._tables.due.get(job)
        state = facts.state
        if state is None:
            state = QUEUED if due is None else due.state
            state = state if wait is None else BLOCKED
            state = state if lease is None else lease.state
        return JobMoment(
            job,
            state,
            facts.attempt if lease is None else lease.attempt,
            facts.worker if lease is None else lease.worker,
            0 if wait is None else wait.manual,
            0 if wait is None else wait.unmet,
            facts.created_at,
            row.started_at if lease is None else lease.started_at,
            row.finished_at,
        )

    async def _worker_names(self, ids: Sequence[int]) -> Mapping[int, str]:
        present = (self._tables.workers.get(worker) for worker in ids)
        past = (self._tables.past_workers.get(worker) for worker in ids)
        names = {row[0]: row[1] for row in past if row is not None}
        return names | {row.id: row.name for row in present if row is not None}

    async def _files_of(self, ids: Sequence[int]) -> FilesOf:
        files = self._files
        return FilesOf(await files.logs(ids), await files.progress(ids), await files.dynamic(ids))

    async def _attempts(self, job: int) -> Sequence[Attempt]:
        return (await self._job_rows.attempts([job])).get(job, ())

    async def _artifacts(self, job: int) -> Sequence[ArtifactRow]:
        return (await self._files.artifacts([job])).get(job, ())

    async def _workers(self) -> Iterable[Worker]:
        return sorted(self._tables.workers)

    async def _lease_counts(self) -> Mapping[int, int]:
        return await self._lease_rows.count([row.id for row in self._tables.workers])

    async def fleet(self) -> Sequence[FleetRow]:
        held = await self._lease_counts()
        rows = sorted(self._tables.workers, key=lambda row: row.name)
        return [
            (w.id, w.name, w.status, w.slots, held.get(w.id, 0), w.reason, w.static, w.dynamic)
            for w in rows
        ]

    async def _ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        wanted = set(shapes)
        found = (
            ticket
            for ticket in self._tables.ready
            if ticket.shape in wanted and (ticket.rank, ticket.job) < (rank, job)
        )
        return sum(1 for _ in islice(found, most))

    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        ready = [(one.shape, (one.rank, one.job)) for one in self._tables.ready]
        return [
            min(most, sum(s == span.shape and span[1:3] <= at < span[3:5] for s, at in ready))
            for span in spans
        ]

    async def census(self, most: int) -> Census:
        tables = self._tables
        blocked = (row for row in tables.waits if not row.is_running)
        later = (row for row in tables.due if row.state != QUEUED)
        rows = ((tables.jobs.get(lease.job), lease.state) for lease in tables.leases)
        leased = ((row.facts.shape, state) for row, state in rows if row is not None)
        jobs = Counter(
            chain(
                ((row.ticket.shape, BLOCKED) for row in islice(blocked, most)),
                ((row.ticket.shape, row.state) for row in islice(later, most)),
                islice(leased, most),
            )
        )
        workers: dict[int, tuple[int, int]] = {}
        for worker in tables.workers:
            count, slots = workers.get(worker.status, (0, 0))
            workers[worker.status] = count + 1, slots + worker.slots
        return Census(
            sorted((shape, state, count) for (shape, state), count in jobs.items()),
            sorted((status, *counts) for status, counts in workers.items()),
        )

    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]:
        jobs = [ticket.job for ticket in self._tables.ready if ticket.shape == shape]
        rows = [self._tables.jobs.get(job) for job in dict.fromkeys(jobs[:most] + jobs[-most:])]
        return [
            WaitingJob(row.facts.id, None if _tried(row.facts) else row.facts.age_from, row.spec)
            for row in rows
            if row is not None
        ]

    async def holders(self, limit: int, most: int) -> list[int]:
        jobs: Iterable[int] = (row.job for row in self._tables.leases if row.limit == limit)
        return sorted(jobs)[:most]

    async def rate(self, namespace: str, key: str) -> RateRow | None:
        return self._tables.rates.get((namespace, key))

    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]:
        kinds = EventKind.WORKER, EventKind.QUEUE, EventKind.LOOP
        found = self._tables.events.between((after + 1,), (until + 1,))
        return [event for event in found if event.kind in kinds][:most]

    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        return self._newest(lambda event: event.worker == worker, after, until, most)

    async def pool_events(self, after: int, until: int, most: int) -> list[Event]:
        return self._newest(lambda event: event.kind == EventKind.POOL, after, until, most)

    def _newest(
        self, takes: Callable[[Event], bool], after: int, until: int, most: int
    ) -> list[Event]:
        found = self._tables.events.between((after + 1,), (until + 1,))
        return [event for event in found if takes(event)][-most:][::-1]

    async def _counters(self) -> Mapping[str, int]:
        return await self._log.counters()


def _tried(facts: JobFacts) -> bool:
    return bool(facts.failed or facts.lost or facts.returned)
