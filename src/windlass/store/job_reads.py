"""The reads that job lists need from a store, each by an index."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.rows.records import JobRecord, Lease, ShapeRow
from windlass.domain.rows.views import Place
from windlass.store.job_filters import Candidate, JobText, Source, Standing
from windlass.store.sql.jobs import records_of
from windlass.store.sql.session import Role, of_ids, query

# The statements that read a source below an id, and above it.
SCANS: Final = {
    Source.JOBS: ("scan_jobs", "scan_jobs_up"),
    Source.LEASES: ("scan_leases", "scan_leases_up"),
    Source.WAITS: ("scan_waits", "scan_waits_up"),
    Source.DUE: ("scan_due", "scan_due_up"),
    Source.BAD: ("scan_bad", "scan_bad_up"),
    Source.WORKFLOW: ("scan_workflow", "scan_workflow_up"),
}


class Stretch(NamedTuple):
    """Rows of jobs to read from an id on: at most `most`, or until `width` pass."""

    start: int
    most: int
    width: int
    down: bool


class Seen(NamedTuple):
    """The candidates of a stretch that pass; `looked` rows were read, the last one is `at`.

    `at` is 0 if there were none; `ended` says that no rows follow. `texts` are the texts, if the
    store has read them as well.
    """

    rows: Sequence[Candidate]
    looked: int
    at: int
    ended: bool
    texts: Mapping[int, JobText] | None = None


class JobReads(Role, ABC):
    """The reads. Unknown ids are left out."""

    @abstractmethod
    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs in this order."""

    async def _scan(
        self, source: Source, start: int, count: int, workflow: int | None, *, down: bool
    ) -> list[Candidate]:
        """Returns the next jobs of a source below an id, descending, or above it, ascending."""
        below, above = SCANS[source]
        name = below if down else above
        args = (start, count, workflow) if source is Source.WORKFLOW else (start, count)
        return await self._session.rows(Candidate, name, *args)

    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        """Returns these jobs, descending."""
        wanted = self._session.integers(ids)  # in this order
        return await self._session.rows(Candidate, "light_jobs", wanted) if ids else []

    async def _few_queued(self, most: int) -> list[int] | None:
        """Returns the queued jobs in any order; None if there may be more than `most`."""
        rows = await self._session.fetch("queued_jobs", most + 1)
        return [row[0] for row in rows] if len(rows) <= most else None

    async def _leases_by_start(self, after: Place, count: int) -> list[Place]:
        """Returns when leases started, or were assigned, with their jobs, ascending."""
        rows = await self._session.fetch("leases_by_start", *after, count)
        return [(since, job) for since, job in rows]

    @abstractmethod
    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        """Returns the ranks of ready jobs of some shapes with the jobs, ascending.

        These are at least the first `count`, if there are that many.
        """

    async def _ends_between(self, start: int, below: int, count: int) -> list[Place]:
        """Returns the last events, from number `start` on, that ended jobs, with the jobs."""
        rows = await self._session.fetch("ends_between", start, below, count)
        return [(number, job) for number, job in rows]

    async def _event_bounds(self) -> tuple[int, int]:
        """Returns the numbers of the oldest and the newest event; (1, 0) without any."""
        oldest, newest = (await self._session.fetch("event_bounds"))[0]
        return oldest, newest

    _event_time = query("event_time", int).optional()
    """Returns when the first event from this number on happened."""

    _created_up_to = query("created_up_to", int).optional()
    """Returns when the newest job up to this id was created."""

    _newest_job = query("newest_job").number()
    _oldest_job = query("oldest_job").number()

    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]:
        rows = await self._session.fetch("jobs_of_key", self._session.texts(namespaces), key)
        return [row[0] for row in rows]

    async def _shapes(self) -> Iterable[ShapeRow]:
        return await self._session.rows(ShapeRow, "shapes_after", 0)

    _specs = of_ids("job_specs").values(bytes)

    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]:
        rows = records_of(await self._fetch("job_records", ids))
        return {row.facts.id: row for row in rows}

    _job_texts = of_ids("job_texts").by_id(JobText)
    _leases = of_ids("read_leases").by_id(Lease)

    _standings = of_ids("standings").rows(Standing)
    """Returns the places of the jobs that are in `waits` or `due`."""

    _counters = query("counters").pairs(str, int)

    async def _fetch(self, query: str, ids: Sequence[int]) -> list[Any]:
        return await self._session.fetch(query, self._session.integers(ids)) if ids else []
