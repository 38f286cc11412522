"""Shows jobs and workers as people see them, over a few reads that differ. It takes no locks."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.rows.events import Event
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, Progress
from windlass.domain.rows.records import Attempt, JobRecord, RateRow, Worker
from windlass.domain.rows.views import (
    Census,
    FleetRow,
    JobMoment,
    ReadySpan,
    WaitingJob,
    WorkerView,
    accepted_attempt,
)
from windlass.store.job_filters import make_view
from windlass.store.job_lists import JobLists

BESIDE: Final = 50  # shapes that are counted at once


class FilesOf(NamedTuple):
    """What attempts of jobs have written beside their results, by job."""

    logs: Mapping[int, Sequence[LogRow]]
    progress: Mapping[int, Progress]
    dynamic: Mapping[int, Dynamic]


class Views(JobLists):
    """Jobs and workers as people see them. Answers by id leave out unknown ids."""

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
        """Returns the names of these workers, also of those that were removed."""
        return await self._worker_names(sorted(ids))

    async def some(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs, in this order and without unknown ones, as lists show them."""
        return await self._views(ids)

    async def workers_with_counts(self) -> list[WorkerView]:
        """Returns every worker, ascending by id."""
        counts = await self._lease_counts()
        return [WorkerView(row, counts.get(row.id, 0)) for row in await self._workers()]

    @abstractmethod
    async def moments(self, ids: Sequence[int]) -> list[JobMoment]:
        """Returns where these jobs stand, ascending by id and without unknown ones."""

    # What explains a wait

    @abstractmethod
    async def census(self, most: int) -> Census:
        """Counts open jobs that are not queued, and workers; at most `most` rows of each place."""

    @abstractmethod
    async def fleet(self) -> Sequence[FleetRow]:
        """Returns every worker, ascending by name, as `explain` looks at it."""

    async def ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        """Counts ready jobs of these shapes before (rank, job), up to `most`."""
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
    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        """Counts the ready jobs in each of these parts of lines, up to `most` in each."""

    @abstractmethod
    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]:
        """Returns the first and the last ready jobs of a shape, up to `most` of each.

        They come in the order in which they would be taken.
        """

    @abstractmethod
    async def holders(self, limit: int, most: int) -> list[int]:
        """Returns the first jobs, ascending, that hold a slot of this limit."""

    @abstractmethod
    async def rate(self, namespace: str, key: str) -> RateRow | None:
        """Returns the newest starts under a rate, if there were any."""

    @abstractmethod
    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]:
        """Returns the first events about workers and queues in (after, until], ascending."""

    @abstractmethod
    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        """Returns the last events in (after, until] that name this worker, descending.

        It walks that part of the log: callers limit its length.
        """

    @abstractmethod
    async def pool_events(self, after: int, until: int, most: int) -> list[Event]:
        """Returns the last events about pools in (after, until], descending."""

    @abstractmethod
    async def _worker_names(self, ids: Sequence[int]) -> Mapping[int, str]: ...

    @abstractmethod
    async def _attempts(self, job: int) -> Sequence[Attempt]: ...

    @abstractmethod
    async def _artifacts(self, job: int) -> Sequence[ArtifactRow]: ...

    @abstractmethod
    async def _workers(self) -> Iterable[Worker]: ...

    @abstractmethod
    async def _lease_counts(self) -> Mapping[int, int]: ...


class GatheredViews(Views):
    """The same where reads are cheap: jobs are brought together from one read of each table."""

    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs in this order."""
        if not ids:
            return []
        records = await self._records(ids)
        unfinished = [job for job in ids if job in records and records[job].facts.is_open]
        leases = await self._leases(unfinished)
        waiting = [job for job in unfinished if job not in leases]
        found = sorted(await self._standings(waiting), key=lambda row: row.state, reverse=True)
        places = {row.job: row for row in found}
        last = {record.facts.worker for record in records.values()}
        held = {lease.worker for lease in leases.values()}
        names = await self._worker_names(sorted({n for n in last if n is not None} | held))
        files = await self._files_of(ids)
        return [
            make_view(
                records[job], leases.get(job), places.get(job), names, files.logs.get(job, ()),
                files.progress.get(job), files.dynamic.get(job),
            )
            for job in ids
            if job in records
        ]  # fmt: skip

    @abstractmethod
    async def _files_of(self, ids: Sequence[int]) -> FilesOf: ...
