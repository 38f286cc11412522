"""What lists and pages show, each read by an index."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windlass.domain.rows.events import Event
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, Progress
from windlass.domain.rows.records import (
    Attempt,
    JobFacts,
    JobRecord,
    Lease,
    RateRow,
    ShapeRow,
    Worker,
)
from windlass.domain.rows.views import (
    Census,
    FleetRow,
    JobFilter,
    JobMoment,
    Place,
    ReadySpan,
    WaitingJob,
)
from windlass.store import job_lists
from windlass.store.job_filters import Candidate, RowFilter, Source, Standing, asks_record
from windlass.store.job_reads import Seen, Stretch
from windlass.store.job_search import JobText
from windlass.store.job_views import Views
from windlass.store.postgres.columns import ascending
from windlass.store.postgres.core.leases import leases_of
from windlass.store.postgres.core.log import events_of
from windlass.store.postgres.records.files import PostgresFiles
from windlass.store.postgres.session import Rows, Session

FACTS = len(JobFacts._fields)
# Where the parts of a row of `job_views` begin: what a record needs first, then other tables.
STATE = FACTS + 9
LEASE = STATE + 3
LOG = LEASE + len(Lease._fields)
PROGRESS = LOG + len(LogRow._fields)
DYNAMIC = PROGRESS + len(Progress._fields)
NOT_LISTED = (), (), ()  # attempts, artifacts, workers

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

_MATCHING = {  # with texts, down
    (False, True): "scan_matching",
    (False, False): "scan_matching_up",
    (True, True): "scan_texts",
    (True, False): "scan_texts_up",
}


class PostgresViews(Views):
    """`ViewsRead` over one transaction."""

    __slots__ = ("_files", "_session")
    growth = 16  # each read is a round trip

    def __init__(self, session: Session) -> None:
        self._session = session
        self._files = PostgresFiles(session)

    async def _look(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        row_filter: RowFilter,
        stretch: Stretch,
    ) -> Seen:
        with_texts = asks_record(wanted)
        if sources != (Source.JOBS,) or (row_filter.is_any and not with_texts):
            return await super()._look(sources, wanted, row_filter, stretch)
        shapes = None if row_filter.shapes is None else sorted(row_filter.shapes)
        found = await self._session.fetch(
            _MATCHING[with_texts, stretch.down], stretch.start, stretch.most, stretch.width,
            row_filter.ended, row_filter.is_open, shapes,
        )  # fmt: skip
        rows = [Candidate._make(row[:3]) for row in found]
        texts = {row[0]: JobText(row[0], *row[3:]) for row in found} if with_texts else None
        if len(rows) == stretch.width:
            last = rows[-1].job
            begin = rows[0].job if stretch.start == job_lists.FIRST else stretch.start
            looked = max(len(rows), min(abs(begin - last), stretch.most))  # at least
            return Seen(rows, looked, last, False, texts)
        reach = "reach" if stretch.down else "reach_up"
        reached = await self._session.fetch(reach, stretch.start, stretch.most)
        looked, at = reached[0]
        return Seen(rows, looked, at, looked < stretch.most, texts)

    async def _scan(
        self, source: Source, below: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        args = (below, count, workflow) if source is Source.WORKFLOW else (below, count)
        rows = await self._session.fetch(_SCANS[source], *args)
        return list(map(Candidate._make, rows))

    async def _scan_up(
        self, source: Source, above: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        args = (above, count, workflow) if source is Source.WORKFLOW else (above, count)
        rows = await self._session.fetch(_SCANS_UP[source], *args)
        return list(map(Candidate._make, rows))

    async def _leases_by_start(self, after: Place, count: int) -> list[Place]:
        rows = await self._session.fetch("leases_by_start", *after, count)
        return [(row[0], row[1]) for row in rows]

    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        rows = await self._session.fetch("ready_first", list(shapes), *after, count)
        return [(row[0], row[1]) for row in rows]

    async def _ends_between(self, start: int, below: int, count: int) -> list[Place]:
        rows = await self._session.fetch("ends_between", start, below, count)
        return [(row[0], row[1]) for row in rows]

    async def _event_bounds(self) -> tuple[int, int]:
        rows = await self._session.fetch("event_bounds")
        return rows[0][0], rows[0][1]

    async def _event_time(self, number: int) -> int | None:
        found: int | None = await self._session.fetch_value("event_time", number)
        return found

    async def _id_behind(self, at: int, newest: int) -> int:
        args = at, newest + 1, job_lists.CHUNK
        return int(await self._session.fetch_value("id_behind", *args))

    async def _event_behind(self, at: int, oldest: int, newest: int) -> int:
        args = at, oldest - 1, newest + 1, job_lists.CHUNK
        return int(await self._session.fetch_value("event_behind", *args))

    async def _created_up_to(self, job: int) -> int | None:
        found: int | None = await self._session.fetch_value("created_up_to", job)
        return found

    async def _newest_job(self) -> int:
        return int(await self._session.fetch_value("newest_job"))

    async def _oldest_job(self) -> int:
        return int(await self._session.fetch_value("oldest_job"))

    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        return list(map(Candidate._make, await self._by_ids("light_jobs", ids)))

    async def _few_queued(self, most: int) -> list[int] | None:
        rows = await self._session.fetch("queued_jobs", most + 1)
        return [row[0] for row in rows] if len(rows) <= most else None

    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]:
        rows = await self._session.fetch("jobs_of_key", list(namespaces), key)
        return [row[0] for row in rows]

    async def _shapes(self) -> Iterable[ShapeRow]:
        return map(ShapeRow._make, await self._session.fetch("shapes_after", 0))

    async def _specs(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        return {row[0]: row[1] for row in await self._by_ids("job_specs", ids)}

    async def _job_texts(self, ids: Sequence[int]) -> list[JobText]:
        return list(map(JobText._make, await self._by_ids("job_texts", ids)))

    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]:
        return {row.facts.id: row for row in records_of(await self._by_ids("job_records", ids))}

    async def _leases(self, ids: Sequence[int]) -> Mapping[int, Lease]:
        return {row.job: row for row in leases_of(await self._by_ids("read_leases", ids))}

    async def _standings(self, ids: Sequence[int]) -> Iterable[Standing]:
        return list(map(Standing._make, await self._by_ids("standings", ids)))

    async def _worker_names(self, ids: Sequence[int]) -> Mapping[int, str]:
        return {row[0]: row[1] for row in await self._by_ids("worker_names", ids)}

    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        found = {row[0]: view_of(row) for row in await self._by_ids("job_views", ids)}
        return [found[job] for job in ids if job in found]

    async def _attempts(self, job: int) -> Sequence[Attempt]:
        return list(map(Attempt._make, await self._by_ids("attempts", [job])))

    async def _artifacts(self, job: int) -> Sequence[ArtifactRow]:
        return (await self._files.artifacts([job])).get(job, ())

    async def _workers(self) -> Iterable[Worker]:
        return await self._session.rows(Worker, "all_workers")

    async def _lease_counts(self) -> Mapping[int, int]:
        return {row[0]: row[1] for row in await self._session.fetch("lease_counts")}

    async def _counters(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._session.fetch("counters")}

    async def census(self, most: int) -> Census:
        jobs: Any = await self._session.fetch("census_of_jobs", most)
        workers: Any = await self._session.fetch("census_of_workers")
        return Census([tuple(row) for row in jobs], [tuple(row) for row in workers])

    async def moments(self, ids: Sequence[int]) -> list[JobMoment]:
        return list(map(JobMoment._make, await self._by_ids("job_moments", ids)))

    async def fleet(self) -> Sequence[FleetRow]:
        rows: Sequence[Any] = await self._session.fetch("fleet")
        return rows

    async def _ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        args = list(shapes), rank, job, most
        return int(await self._session.fetch_value("ready_before", *args))

    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        columns = map(list, zip(*spans, strict=True))
        return [row[0] for row in await self._session.fetch("ready_within", *columns, most)]

    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]:
        rows = await self._session.fetch("ready_sample", shape, most)
        return list(map(WaitingJob._make, rows))

    async def holders(self, limit: int, most: int) -> list[int]:
        return [row[0] for row in await self._session.fetch("holders", limit, most)]

    async def rate(self, namespace: str, key: str) -> RateRow | None:
        rows = await self._session.fetch("rate_starts", namespace, key)
        return RateRow(*rows[0]) if rows else None

    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]:
        return events_of(await self._session.fetch("fleet_events", after, until, most))

    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        return events_of(await self._session.fetch("worker_events", after, until, worker, most))

    async def pool_events(self, after: int, until: int, most: int) -> list[Event]:
        return events_of(await self._session.fetch("pool_events", after, until, most))

    async def _by_ids(self, query: str, ids: Sequence[int]) -> Rows:
        return await self._session.fetch(query, ascending(ids)) if ids else []


def view_of(row: Any) -> JobRecord:
    """Builds a record with all that is shown in lists from a row of `job_views`."""
    return JobRecord._make(
        (
            JobFacts._make(row[:FACTS]),
            *row[FACTS : LEASE - 1],
            None if row[LEASE] is None else Lease._make(row[LEASE:LOG]),
            row[LEASE - 1],
            None if row[LOG] is None else LogRow._make(row[LOG:PROGRESS]),
            None if row[PROGRESS] is None else Progress._make(row[PROGRESS:DYNAMIC]),
            None if row[DYNAMIC] is None else Dynamic._make(row[DYNAMIC:]),
            *NOT_LISTED,
        )
    )


def records_of(rows: Rows) -> list[JobRecord]:
    """Builds records from rows that hold the facts and then the rest."""
    return [JobRecord(JobFacts._make(row[:FACTS]), *row[FACTS:]) for row in rows]
