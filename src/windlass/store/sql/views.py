"""What lists and pages show: jobs and workers as people see them. Nothing here locks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from windlass.domain.rows.events import Event
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
from windlass.store.job_lists import JobLists
from windlass.store.sql.files import Files
from windlass.store.sql.session import Session, of_ids, query

BESIDE: Final = 50  # shapes that are counted at once


class Views(JobLists):
    """Jobs and workers as people see them. Unknown ids are left out."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._files = Files(session)

    async def job(self, job: int) -> JobRecord | None:
        views = await self._views([job])
        if not views:
            return None
        view = views[0]
        attempts = await self._session.rows(Attempt, "attempts", self._session.ids([job]))
        accepted = accepted_attempt(view.facts)
        artifacts = (await self._files.artifacts([job])).get(job, ())
        names = await self.worker_names({row.worker for row in attempts})
        return view._replace(
            attempts=tuple(attempts),
            artifacts=tuple(row for row in artifacts if row.attempt == accepted),
            workers=tuple(sorted(names.items())),
        )

    async def worker_names(self, ids: Iterable[int]) -> Mapping[int, str]:
        """Returns the names of these workers, including removed ones."""
        return dict(await self._fetch("worker_names", sorted(ids)))

    async def some(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs as lists show them, in this order and without unknown ones."""
        return await self._views(ids)

    async def workers_with_counts(self) -> list[WorkerView]:
        """Returns every worker, ascending by id."""
        counts = dict(await self._session.fetch("lease_counts"))
        workers = await self._session.rows(Worker, "all_workers")
        return [WorkerView(row, counts.get(row.id, 0)) for row in workers]

    moments = of_ids("job_moments").rows(JobMoment)
    """Returns the places of these jobs, ascending by id and without unknown ones."""

    async def census(self, most: int) -> Census:
        """Counts open jobs that are not queued, and workers; at most `most` rows of each place."""
        jobs: Any = await self._session.fetch("census_of_jobs", most)
        workers: Any = await self._session.fetch("census_of_workers")
        return Census([tuple(row) for row in jobs], [tuple(row) for row in workers])

    async def fleet(self) -> Sequence[FleetRow]:
        """Returns every worker, ascending by name, with the fields that `explain` needs."""
        return await self._session.fetch("fleet")

    async def ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        """Counts ready jobs of these shapes before (rank, job), up to `most`."""
        count = 0
        for first in range(0, len(shapes), BESIDE):
            some = shapes[first : first + BESIDE]
            count += await self._ready_before(some, rank, job, most - count)
            if count >= most:
                return most
        return count

    async def _ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        """Returns the same; each shape may count up to `most`."""
        args = self._session.integers(shapes), rank, job, most
        return int(await self._session.fetch_value("ready_before", *args))

    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        """Counts the ready jobs in each of these ranges, up to `most` in each."""
        probes = [(*span, most) for span in spans]
        return [row[0] for row in await self._session.fetch_many("ready_within", "iiiiii", probes)]

    ready_sample = query("ready_sample", int, int).rows(WaitingJob)
    """Returns the first and the last ready jobs of a shape, up to a number of each.

    They are in the order in which they would be claimed.
    """

    holders = query("holders", int, int).column()
    """Returns the first jobs, ascending, that hold a slot of a limit, up to a number."""

    rate = query("rate", str, str).row(RateRow)
    """Returns the newest starts under a namespace's rate with this key, if there were any."""

    fleet_events = query("fleet_events", int, int, int).rows(Event)
    """Returns the first events about workers and queues in (after, until], ascending, up to a
    number.
    """

    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        """Returns the last events in (after, until] that name this worker, descending.

        It scans that part of the log, so callers limit its length.
        """
        return await self._session.rows(Event, "worker_events", after, until, worker, most)

    pool_events = query("pool_events", int, int, int).rows(Event)
    """Returns the last events about pools in (after, until], descending, up to a number."""
