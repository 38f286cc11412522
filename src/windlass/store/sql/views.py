"""What lists and pages show, each read by an index."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windlass.domain.rows.events import Event
from windlass.domain.rows.files import ArtifactRow
from windlass.domain.rows.records import Attempt, JobRecord, Lease, RateRow, ShapeRow, Worker
from windlass.domain.rows.views import Census, FleetRow, JobMoment, Place, ReadySpan, WaitingJob
from windlass.store.job_filters import Candidate, Source, Standing
from windlass.store.job_search import JobText
from windlass.store.job_views import Views
from windlass.store.sql.files import Files
from windlass.store.sql.jobs import records_of
from windlass.store.sql.session import R, Session

_SCANS = {
    Source.JOBS: "scan_jobs",
    Source.LEASES: "scan_leases",
    Source.WAITS: "scan_waits",
    Source.DUE: "scan_due",
    Source.BAD: "scan_bad",
    Source.WORKFLOW: "scan_workflow",
}
_SCANS_UP = {
    Source.JOBS: "scan_jobs_up",
    Source.LEASES: "scan_leases_up",
    Source.WAITS: "scan_waits_up",
    Source.DUE: "scan_due_up",
    Source.BAD: "scan_bad_up",
    Source.WORKFLOW: "scan_workflow_up",
}


class SqlViews(Views):
    """Implements `Views`, but for how many jobs are looked at and brought together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._files = Files(session)

    async def _scan(
        self, source: Source, below: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        args = (below, count, workflow) if source is Source.WORKFLOW else (below, count)
        return await self._session.rows(Candidate, _SCANS[source], *args)

    async def _scan_up(
        self, source: Source, above: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        args = (above, count, workflow) if source is Source.WORKFLOW else (above, count)
        return await self._session.rows(Candidate, _SCANS_UP[source], *args)

    async def _leases_by_start(self, after: Place, count: int) -> list[Place]:
        rows = await self._session.fetch("leases_by_start", *after, count)
        return [(since, job) for since, job in rows]

    async def _ends_between(self, start: int, below: int, count: int) -> list[Place]:
        rows = await self._session.fetch("ends_between", start, below, count)
        return [(number, job) for number, job in rows]

    async def _event_bounds(self) -> tuple[int, int]:
        oldest, newest = (await self._session.fetch("event_bounds"))[0]
        return oldest, newest

    async def _event_time(self, number: int) -> int | None:
        found: int | None = await self._session.fetch_value("event_time", number)
        return found

    async def _created_up_to(self, job: int) -> int | None:
        found: int | None = await self._session.fetch_value("created_up_to", job)
        return found

    async def _newest_job(self) -> int:
        return int(await self._session.fetch_value("newest_job"))

    async def _oldest_job(self) -> int:
        return int(await self._session.fetch_value("oldest_job"))

    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        return await self._by_ids(Candidate, "light_jobs", ids)

    async def _few_queued(self, most: int) -> list[int] | None:
        rows = await self._session.fetch("queued_jobs", most + 1)
        return [row[0] for row in rows] if len(rows) <= most else None

    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]:
        rows = await self._session.fetch("jobs_of_key", self._session.texts(namespaces), key)
        return [row[0] for row in rows]

    async def _shapes(self) -> Iterable[ShapeRow]:
        return await self._session.rows(ShapeRow, "shapes_after", 0)

    async def _specs(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        return dict(await self._fetch("job_specs", ids))

    async def _job_texts(self, ids: Sequence[int]) -> list[JobText]:
        return await self._by_ids(JobText, "job_texts", ids)

    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]:
        rows = records_of(await self._fetch("job_records", ids))
        return {row.facts.id: row for row in rows}

    async def _leases(self, ids: Sequence[int]) -> Mapping[int, Lease]:
        return {row.job: row for row in await self._by_ids(Lease, "read_leases", ids)}

    async def _standings(self, ids: Sequence[int]) -> Iterable[Standing]:
        return await self._by_ids(Standing, "standings", ids)

    async def _worker_names(self, ids: Sequence[int]) -> Mapping[int, str]:
        return dict(await self._fetch("worker_names", ids))

    async def _attempts(self, job: int) -> Sequence[Attempt]:
        return await self._by_ids(Attempt, "attempts", [job])

    async def _artifacts(self, job: int) -> Sequence[ArtifactRow]:
        return (await self._files.artifacts([job])).get(job, ())

    async def _workers(self) -> Iterable[Worker]:
        return await self._session.rows(Worker, "all_workers")

    async def _lease_counts(self) -> Mapping[int, int]:
        return dict(await self._session.fetch("lease_counts"))

    async def _counters(self) -> Mapping[str, int]:
        return dict(await self._session.fetch("counters"))

    async def census(self, most: int) -> Census:
        jobs: Any = await self._session.fetch("census_of_jobs", most)
        workers: Any = await self._session.fetch("census_of_workers")
        return Census([tuple(row) for row in jobs], [tuple(row) for row in workers])

    async def moments(self, ids: Sequence[int]) -> list[JobMoment]:
        return await self._by_ids(JobMoment, "job_moments", ids)

    async def fleet(self) -> Sequence[FleetRow]:
        return await self._session.fetch("fleet")

    async def _ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        args = self._session.integers(shapes), rank, job, most
        return int(await self._session.fetch_value("ready_before", *args))

    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        probes = [(*span, most) for span in spans]
        return [row[0] for row in await self._session.fetch_many("ready_within", "iiiiii", probes)]

    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]:
        return await self._session.rows(WaitingJob, "ready_sample", shape, most)

    async def holders(self, limit: int, most: int) -> list[int]:
        return [row[0] for row in await self._session.fetch("holders", limit, most)]

    async def rate(self, namespace: str, key: str) -> RateRow | None:
        return await self._session.row(RateRow, "rate", namespace, key)

    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]:
        return await self._session.rows(Event, "fleet_events", after, until, most)

    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        return await self._session.rows(Event, "worker_events", after, until, worker, most)

    async def pool_events(self, after: int, until: int, most: int) -> list[Event]:
        return await self._session.rows(Event, "pool_events", after, until, most)

    async def _by_ids(self, kind: type[R], query: str, ids: Sequence[int]) -> list[R]:
        """Returns records of these ids, of which there may be none."""
        return await self._session.rows(kind, query, self._session.integers(ids)) if ids else []

    async def _fetch(self, query: str, ids: Sequence[int]) -> list[Any]:
        return await self._session.fetch(query, self._session.integers(ids)) if ids else []
