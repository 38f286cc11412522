"""Showing jobs, the same way on every store: `ViewsRead` over a few reads that differ.

A list is driven from the narrowest place that holds all wanted states: running jobs from
`leases`, blocked ones from `waits`, failed ones from an index of their own. Whatever the
filter, one call looks at `SCAN` rows at most and answers with a cursor, so a search
through a million jobs never holds anybody up.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from typing import Final

from windlass.domain.rows.events import Event
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, Progress
from windlass.domain.rows.records import Attempt, JobRecord, Lease, RateRow, ShapeRow, Worker
from windlass.domain.rows.views import (
    FleetRow,
    JobFilter,
    JobMoment,
    JobPage,
    WaitingJob,
    WorkerView,
    accepted_attempt,
)
from windlass.store.job_filters import (
    ACTIVE_CODES,
    BAD_CODES,
    BLOCKED,
    COMPLETED,
    QUEUED,
    RETRYING,
    SUSPENDED,
    Candidate,
    Source,
    Standing,
    allows,
    decode_shape,
    make_view,
    may_match,
    states_of,
    tells,
)

SCAN: Final = 5_000  # rows that one call looks at
CHUNK: Final = 500  # rows that are read at once
BESIDE: Final = 50  # shapes that are counted at once
FIRST: Final = 2**62  # above every id

_DEPTH: Final = "depth:"


class Views(ABC):
    """`ViewsRead`; each store adds how it reads. Answers by id leave out unknown ids."""

    async def job(self, job: int) -> JobRecord | None:
        views = await self._views([job])
        if not views:
            return None
        view = views[0]
        attempts = await self._attempts(job)
        accepted = accepted_attempt(view.facts)
        artifacts = [row for row in await self._artifacts(job) if row.attempt == accepted]
        names = await self._worker_names(sorted({row.worker for row in attempts}))
        return view._replace(
            attempts=tuple(attempts),
            artifacts=tuple(artifacts),
            workers=tuple(sorted(names.items())),
        )

    async def worker_names(self, ids: Sequence[int]) -> Mapping[int, str]:
        return await self._worker_names(sorted(ids))

    async def some(self, ids: Sequence[int]) -> list[JobRecord]:
        return await self._views(ids)

    async def jobs(self, wanted: JobFilter, cursor: int, limit: int) -> JobPage:
        shapes = await self._shapes_of(wanted)
        below = cursor or FIRST
        if wanted.key is not None:
            ids = await self._keyed(wanted)
            ids = sorted((job for job in ids if job < below), reverse=True)
            return JobPage(await self._matching(wanted, shapes, await self._light(ids)), 0)
        found: list[JobRecord] = []
        sources = await self._sources(wanted)
        scanned = 0
        while scanned < SCAN:
            rows = await self._next(sources, wanted, below)
            if not rows:
                return JobPage(found, 0)
            found += await self._matching(wanted, shapes, rows)
            if len(found) >= limit:
                found = found[:limit]
                return JobPage(found, found[-1].facts.id)
            scanned += len(rows)
            below = rows[-1].job
        return JobPage(found, below)

    async def workers_with_counts(self) -> list[WorkerView]:
        counts = await self._lease_counts()
        return [WorkerView(row, counts.get(row.id, 0)) for row in await self._workers()]

    async def queue_depths(self) -> dict[str, int]:
        found = await self._counters()
        return {n.removeprefix(_DEPTH): v for n, v in found.items() if n.startswith(_DEPTH)}

    @abstractmethod
    async def moments(self, ids: Sequence[int]) -> list[JobMoment]: ...

    # What explains a wait

    @abstractmethod
    async def fleet(self) -> Sequence[FleetRow]: ...

    async def ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        count = 0
        for first in range(0, len(shapes), BESIDE):
            some = shapes[first : first + BESIDE]
            count += await self._ready_before(some, rank, job, most - count)
            if count >= most:
                return most
        return count

    @abstractmethod
    async def _ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        """Returns the same, where each of the shapes may count up to `most`."""

    @abstractmethod
    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]: ...

    @abstractmethod
    async def holders(self, limit: int, most: int) -> list[int]: ...

    @abstractmethod
    async def rate(self, namespace: str, key: str) -> RateRow | None: ...

    @abstractmethod
    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]: ...

    # What a list is driven from

    async def _sources(self, wanted: JobFilter) -> tuple[Source, ...] | list[int]:
        """Returns the places that hold all wanted jobs, or their ids where those are few."""
        if wanted.workflow is not None:
            return (Source.WORKFLOW,)
        states = states_of(wanted)
        if states == {QUEUED}:
            few = await self._few_queued(SCAN)
            if few is not None:
                return sorted(few, reverse=True)
        if not states or states & {QUEUED, COMPLETED}:
            return (Source.JOBS,)
        drive = {
            Source.LEASES: ACTIVE_CODES,
            Source.WAITS: {BLOCKED},
            Source.DUE: {RETRYING, SUSPENDED},
            Source.BAD: BAD_CODES,
        }
        return tuple(source for source, holds in drive.items() if states & holds)

    async def _next(
        self, sources: tuple[Source, ...] | list[int], wanted: JobFilter, below: int
    ) -> list[Candidate]:
        """Returns the next candidates below an id, descending."""
        if isinstance(sources, list):
            return await self._light([job for job in sources if job < below][:CHUNK])
        found = [await self._scan(source, below, CHUNK, wanted.workflow) for source in sources]
        if len(found) == 1:
            return found[0]
        merged = merge(*found, key=lambda row: row.job, reverse=True)
        # A blocked job that still runs is in two of them.
        return list({row.job: row for row in merged}.values())[:CHUNK]

    async def _shapes_of(self, wanted: JobFilter) -> frozenset[int] | None:
        """Returns the shapes that the filter allows, None for all."""
        if wanted.namespaces is None and wanted.queue is None and wanted.task is None:
            return None
        return frozenset(row.id for row in await self._shapes() if allows(wanted, row.body))

    async def _keyed(self, wanted: JobFilter) -> list[int]:
        namespaces = wanted.namespaces
        if namespaces is None:
            known = {decode_shape(row.body).namespace for row in await self._shapes()}
            namespaces = tuple(sorted(known))
        return await self._jobs_of_key(namespaces, wanted.key or "")

    async def _matching(
        self, wanted: JobFilter, shapes: frozenset[int] | None, rows: Sequence[Candidate]
    ) -> list[JobRecord]:
        states = states_of(wanted)
        ids = [row.job for row in rows if may_match(row, states, shapes)]
        if wanted.name is not None or wanted.labels or wanted.submitted_by is not None:
            specs = await self._specs(ids)
            ids = [job for job in ids if job in specs and tells(wanted, specs[job])]
        views = await self._views(ids)
        if wanted.dead or wanted.current:
            views = [view for view in views if not view.facts.superseded_by]
        return [view for view in views if not states or view.state in states]

    # Bringing rows together

    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs in this order."""
        if not ids:
            return []
        records = await self._records(ids)
        leases = await self._leases([job for job in ids if job in records])
        waiting = [job for job in ids if job in records and job not in leases]
        found = sorted(await self._standings(waiting), key=lambda row: row.state, reverse=True)
        places = {row.job: row for row in found}
        last = {record.facts.worker for record in records.values()}
        held = {lease.worker for lease in leases.values()}
        names = await self._worker_names(sorted({n for n in last if n is not None} | held))
        logs = await self._logs(ids)
        progress, dynamic = await self._progress(ids), await self._dynamic(ids)
        return [
            make_view(
                records[job], leases.get(job), places.get(job), names, logs.get(job, ()),
                progress.get(job), dynamic.get(job),
            )
            for job in ids
            if job in records
        ]  # fmt: skip

    @abstractmethod
    async def _scan(
        self, source: Source, below: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        """Returns the next jobs of a source below an id, descending."""

    @abstractmethod
    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        """Returns these jobs, descending."""

    @abstractmethod
    async def _few_queued(self, most: int) -> list[int] | None:
        """Returns the queued jobs in any order; None if there may be more than `most`."""

    @abstractmethod
    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]: ...

    @abstractmethod
    async def _shapes(self) -> Iterable[ShapeRow]: ...

    @abstractmethod
    async def _specs(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...

    @abstractmethod
    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]: ...

    @abstractmethod
    async def _leases(self, ids: Sequence[int]) -> Mapping[int, Lease]: ...

    @abstractmethod
    async def _standings(self, ids: Sequence[int]) -> Iterable[Standing]:
        """Returns where those of these jobs stand that are in `waits` or `due`."""

    @abstractmethod
    async def _worker_names(self, ids: Sequence[int]) -> Mapping[int, str]: ...

    @abstractmethod
    async def _logs(self, ids: Sequence[int]) -> Mapping[int, Sequence[LogRow]]: ...

    @abstractmethod
    async def _progress(self, ids: Sequence[int]) -> Mapping[int, Progress]: ...

    @abstractmethod
    async def _dynamic(self, ids: Sequence[int]) -> Mapping[int, Dynamic]: ...

    @abstractmethod
    async def _attempts(self, job: int) -> Sequence[Attempt]: ...

    @abstractmethod
    async def _artifacts(self, job: int) -> Sequence[ArtifactRow]: ...

    @abstractmethod
    async def _workers(self) -> Iterable[Worker]: ...

    @abstractmethod
    async def _lease_counts(self) -> Mapping[int, int]: ...

    @abstractmethod
    async def _counters(self) -> Mapping[str, int]: ...
