"""The role of a transaction that brings rows together to be shown. It takes no locks."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from windlass.domain.rows.events import Event
from windlass.domain.rows.records import JobRecord, RateRow
from windlass.domain.rows.views import (
    Census,
    FleetRow,
    JobCount,
    JobFilter,
    JobMoment,
    JobPage,
    JobSort,
    Place,
    ReadySpan,
    SortedPage,
    WaitingJob,
    WorkerView,
)


class ViewsRead(Protocol):
    """Jobs and workers as people see them."""

    async def job(self, job: int) -> JobRecord | None: ...

    async def worker_names(self, ids: Sequence[int]) -> Mapping[int, str]:
        """Returns the names of these workers, also of those that were removed."""
        ...

    async def some(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs, in this order and without unknown ones, as lists show them."""
        ...

    async def jobs(self, wanted: JobFilter, cursor: int, limit: int) -> JobPage:
        """Returns jobs with an id below `cursor` (0: all), newest first.

        Each call looks at a bounded number of rows, however many there are, so a page
        may be short and still have a `next`.
        """
        ...

    async def sorted_jobs(
        self, wanted: JobFilter, sort: JobSort, after: Place | None, limit: int
    ) -> SortedPage:
        """Returns jobs behind a place of an order, bounded like `jobs`.

        Raises `InvalidInput` if the order cannot show what is wanted.
        """
        ...

    async def count_jobs(self, wanted: JobFilter) -> JobCount:
        """Counts jobs by looking at a bounded number of rows."""
        ...

    async def dead_jobs(self, looked: int) -> list[JobRecord]:
        """Returns failed jobs without a successor, among the newest that ended badly."""
        ...

    async def moments(self, ids: Sequence[int]) -> list[JobMoment]:
        """Returns where these jobs stand, ascending by id and without unknown ones."""
        ...

    async def workers_with_counts(self) -> list[WorkerView]:
        """Returns every worker, ascending by id."""
        ...

    async def queue_depths(self) -> dict[str, int]:
        """Returns how many jobs are queued in each queue."""
        ...

    async def census(self, most: int) -> Census:
        """Counts open jobs that are not queued, and workers; at most `most` rows of each place."""
        ...

    async def fleet(self) -> Sequence[FleetRow]:
        """Returns every worker, ascending by name, as `explain` looks at it."""
        ...

    async def ready_before(self, shapes: Sequence[int], rank: int, job: int, most: int) -> int:
        """Counts ready jobs of these shapes before (rank, job), up to `most`."""
        ...

    async def ready_within(self, spans: Sequence[ReadySpan], most: int) -> list[int]:
        """Counts the ready jobs in each of these parts of lines, up to `most` in each."""
        ...

    async def ready_sample(self, shape: int, most: int) -> list[WaitingJob]:
        """Returns the first and the last ready jobs of a shape, up to `most` of each.

        They come in the order in which they would be taken.
        """
        ...

    async def holders(self, limit: int, most: int) -> list[int]:
        """Returns the first jobs, ascending, that hold a slot of this limit."""
        ...

    async def rate(self, namespace: str, key: str) -> RateRow | None:
        """Returns the newest starts under a rate, if there were any."""
        ...

    async def worker_events(self, worker: int, after: int, until: int, most: int) -> list[Event]:
        """Returns the last events in (after, until] that name this worker, descending.

        It walks that part of the log: callers limit its length.
        """
        ...

    async def pool_events(self, after: int, until: int, most: int) -> list[Event]:
        """Returns the last events about pools in (after, until], descending."""
        ...

    async def fleet_events(self, after: int, until: int, most: int) -> list[Event]:
        """Returns the first events about workers and queues in (after, until], ascending."""
        ...
