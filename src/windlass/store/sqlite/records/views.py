"""What lists and pages show, each read by an index."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from windlass.domain.rows.events import Event
from windlass.domain.rows.files import ArtifactRow
from windlass.domain.rows.records import Attempt, JobRecord, Lease, RateRow, ShapeRow, Worker
from windlass.domain.rows.views import (
    Census,
    FleetRow,
    JobFilter,
    JobMoment,
    Place,
    ReadySpan,
    WaitingJob,
)
from windlass.store.job_filters import Candidate, RowFilter, Source, Standing
from windlass.store.job_reads import Seen, Stretch
from windlass.store.job_search import JobText
from windlass.store.job_views import FilesOf, GatheredViews
from windlass.store.sqlite.records.files import SqliteFiles
from windlass.store.sqlite.rows import (
    Row,
    as_attempt,
    as_event,
    as_lease,
    as_record,
    as_shape,
    as_worker,
    integers,
    maker,
)
from windlass.store.sqlite.statements import QUERIES

_candidate = maker(Candidate)
_standing = maker(Standing)

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


class SqliteViews(GatheredViews):
    """`ViewsRead` over one connection."""

    def __init__(self, connection: apsw.Connection, files: SqliteFiles) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._files = files

    async def _scan(
        self, source: Source, below: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        bindings = (below, count, workflow) if source is Source.WORKFLOW else (below, count)
        return list(map(_candidate, self._execute(QUERIES[_SCANS[source]], bindings)))

    async def _scan_up(
        self, source: Source, above: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        bindings = (above, count, workflow) if source is Source.WORKFLOW else (above, count)
        return list(map(_candidate, self._execute(QUERIES[_SCANS_UP[source]], bindings)))

    async def _look(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        row_filter: RowFilter,
        stretch: Stretch,
    ) -> Seen:
        if sources != (Source.JOBS,) or row_filter.is_open:
            return await super()._look(sources, wanted, row_filter, stretch)
        query = "scan_ended" if stretch.down else "scan_ended_up"
        found = self._execute(QUERIES[query], (stretch.start, stretch.width))
        rows = list(map(_candidate, found))
        ended = len(rows) < stretch.width
        return Seen(row_filter.passing(rows), len(rows), rows[-1].job if rows else 0, ended)

    async def _leases_by_start(self, after: Place, count: int) -> list[Place]:
        rows: list[Row] = self._execute(QUERIES["leases_by_start"], (*after, count)).fetchall()
        return [(since, job) for since, job in rows]

    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        probes = [(shape, *after, count) for shape in shapes]
        rows: list[Row] = list(self._executemany(QUERIES["ready_first"], probes))
        return sorted((rank, job) for rank, job in rows)[:count]

    async def _ends_between(self, start: int, below: int, count: int) -> list[Place]:
        rows: list[Row] = self._execute(QUERIES["ends_between"], (start, below, count)).fetchall()
        return [(number, job) for number, job in rows]

    async def _event_bounds(self) -> tuple[int, int]:
        rows: list[Row] = self._execute(QUERIES["oldest_event"]).fetchall()
        newest: int = self._execute(QUERIES["newest_event_seq"]).get
        return (rows[0][0] if rows else 1), newest

    async def _event_time(self, number: int) -> int | None:
        found: int | None = self._execute(QUERIES["event_time"], (number,)).get
        return found

    async def _created_up_to(self, job: int) -> int | None:
        found: int | None = self._execute(QUERIES["created_up_to"], (job,)).get
        return found

    async def _newest_job(self) -> int:
        found: int = self._execute(QUERIES["newest_job"]).get
        return found

    async def _oldest_job(self) -> int:
        found: int = self._execute(QUERIES["oldest_job"]).get
        return found

    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        return list(map(_candidate, self._by_ids("light_jobs", ids)))

    async def _few_queued(self, most: int) -> list[int] | None:
        rows: list[Row] = self._execute(QUERIES["queued_jobs"], (most + 1,)).fetchall()
        return [job for (job,) in rows] if len(rows) <= most else None

    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]:
        rows = self._executemany(QUERIES["key"], [(name, key) for name in namespaces])
        found: list[Row] = list(rows)
        return [row[2] for row in found]

    async def _shapes(self) -> Iterable[ShapeRow]:
        return map(as_shape, self._execute(QUERIES["shapes_after"], (0,)))

    async def _specs(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        return dict(self._by_ids("job_specs", ids))

    async def _job_texts(self, ids: Sequence[int]) -> list[JobText]:
        return list(map(JobText._make, self._by_ids("job_texts", ids)))

    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]:
        return {row[0]: as_record(row) for row in self._by_ids("job_records", ids)}

    async def _leases(self, ids: Sequence[int]) -> Mapping[int, Lease]:
        return {row[0]: as_lease(row) for row in self._by_ids("leases", ids)}

    async def _standings(self, ids: Sequence[int]) -> Iterable[Standing]:
        if not ids:
            return []
        both = integers(ids), integers(ids)
        return list(map(_standing, self._execute(QUERIES["standings"], both)))

    async def _worker_names(self, ids: Sequence[int]) -> Mapping[int, str]:
        if not ids:
            return {}
        return dict(self._execute(QUERIES["worker_names"], (integers(ids), integers(ids))))

    async def _files_of(self, ids: Sequence[int]) -> FilesOf:
        files = self._files
        return FilesOf(await files.logs(ids), await files.progress(ids), await files.dynamic(ids))

    async def _attempts(self, job: int) -> Sequence[Attempt]:
        return list(map(as_attempt, self._by_ids("attempts", [job])))

    async def _artifacts(self, job: int) -> Sequence[ArtifactRow]:
        return (await self._files.artifacts([job])).get(job, ())

    async def _workers(self) -> Iterable[Worker]:
        return map(as_worker, self._execute(QUERIES["all_workers"]))

    async def _lease_counts(self) -> Mapping[int, int]:
        rows: list[Row] = self._execute(QUERIES["lease_counts"]).fetchall()
        return dict(rows)

    async def _counters(self) -> Mapping[str, int]:
        rows: list[Row] = self._execute(QUERIES["counters"]).fetchall()
        return dict(rows)

    async def census(self, most: int) -> Census:
        jobs: list[Any] = self._execute(QUERIES["census_of_jobs"], (most,)).fetchall()
        workers: list[Any] = self._execute(QUERIES["census_of_workers"]).fetchall()
        return Census(jobs, workers)

    async def moments(self, ids: Sequence[int]) -> list[JobMoment]:
        return list(map(JobMoment._make, self._by_ids("job_moments", sorted(ids))))

    async def fleet(self) -> Sequence[FleetRow]:
        rows: list[Any] = self._execute(QUERIES["fleet"]).fetchall()
        return rows

    async def _ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        probes = [(shape, rank, job, most) for shape in shapes]
        rows: list[Row] = list(self._executemany(QUERIES["ready_before"], probes))
        return sum(count for (count,) in rows)

    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        probes = [(*span, most) for span in spans]
        return [count for (count,) in self._executemany(QUERIES["ready_within"], probes)]

    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]:
        return list(map(WaitingJob._make, self._execute(QUERIES["ready_sample"], (shape, most))))

    async def holders(self, limit: int, most: int) -> list[int]:
        rows: list[Row] = self._execute(QUERIES["holders"], (limit, most)).fetchall()
        return [job for (job,) in rows]

    async def rate(self, namespace: str, key: str) -> RateRow | None:
        rows: list[Row] = self._execute(QUERIES["rate"], (namespace, key)).fetchall()
        return RateRow(*rows[0]) if rows else None

    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]:
        rows = self._execute(QUERIES["fleet_events"], (after, until, most))
        return list(map(as_event, rows))

    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        rows = self._execute(QUERIES["worker_events"], (after, until, worker, most))
        return list(map(as_event, rows))

    async def pool_events(self, after: int, until: int, most: int) -> list[Event]:
        rows = self._execute(QUERIES["pool_events"], (after, until, most))
        return list(map(as_event, rows))

    def _by_ids(self, query: str, ids: Sequence[int]) -> list[Any]:
        """Returns rows in the order of the ids, of which there may be none."""
        return self._execute(QUERIES[query], (integers(ids),)).fetchall() if ids else []
