"""The role of a transaction that brings rows together to be shown. It takes no locks."""

from typing import Protocol

from windlass.domain.views import JobFilter, JobPage, JobView, WorkerView


class ViewsTx(Protocol):
    """Jobs and workers as people see them."""

    async def job(self, job: int) -> JobView | None: ...

    async def jobs(self, wanted: JobFilter, cursor: int, limit: int) -> JobPage:
        """Jobs with an id below `cursor` (0: all), newest first.

        Each call looks at a bounded number of rows, however many there are, so a page
        may be short and still have a `next`.
        """
        ...

    async def workers_with_counts(self) -> list[WorkerView]:
        """Every worker, ascending by id."""
        ...

    async def queue_depths(self) -> dict[str, int]:
        """How many jobs are queued in each queue."""
        ...
