"""Handles on submitted workflows."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from windlass.client.errors import ResultTimeout, WorkflowFailed
from windlass.client.handles import WAIT_SECONDS, why_waiting
from windlass.client.service import Service
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import WaitTimeout, WindlassError
from windlass.domain.values.quantities import DurationLike, wait_seconds
from windlass.messages.jobs import Job, JobList, SubmitReply, SubmitRequest
from windlass.messages.schedules import ReactionInfo, ReactionList
from windlass.messages.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    Workflow,
)
from windlass.tasks.handles import Kept

ENDS = frozenset({"completed", "failed", "canceled"})
PAGE = 1_000
SHOWN = 100  # jobs that an error names
FAILED = ("failed", "rejected", "canceled")
OPEN = ("queued", "assigned", "running", "retrying", "blocked")

T = TypeVar("T")


class Page(Protocol):
    """A page of a list; `next` is the cursor of the following one."""

    @property
    def next(self) -> str | None: ...


PageT = TypeVar("PageT", bound=Page)


class AsyncWorkflow(Kept):
    """A submitted workflow. Handles of one workflow are equal, as those of a job are."""

    def __init__(self, service: Service, workflow: int, given_at: int = 0) -> None:
        self._service = service
        self._number = workflow
        self._given_at = given_at  # when it got its id (ms); 0: unknown

    @property
    def id(self) -> int:
        """The workflow's number."""
        return self._number

    async def info(self, wait: float = 0) -> Workflow:
        """Returns the workflow as it is now; with `wait`, once it has ended or time is up."""
        if wait:
            return await self._service.wait_workflow(self.id, wait, self._given_at)
        path = f"/api/v1/workflows/{self.id}"
        return await self._service.ask("GET", path, Workflow, given_at=self._fence)

    async def jobs(self) -> list[Job]:
        """Returns all its jobs, newest first, also those that were superseded."""
        await self._check_own()
        ask = partial(self._service.ask, "GET", "/api/v1/jobs", JobList)
        return await listed(ask, lambda page: page.jobs, {"workflow": self.id})

    async def add(
        self, jobs: Sequence[JobSpec], *, key: str | None = None, reopen: bool = False
    ) -> list[int]:
        """Adds jobs while it runs, or with `reopen` after its end too, and returns their ids.

        If jobs were added with this `key` before, it returns their ids.
        """
        return (await self.add_with_reply(jobs, key=key, reopen=reopen)).ids

    async def add_with_reply(
        self, jobs: Sequence[JobSpec], *, key: str | None = None, reopen: bool = False
    ) -> SubmitReply:
        """Adds jobs as `add` does; the answer also says which ones are new."""
        await self._check_own()
        request = SubmitRequest(
            jobs=[msgspec.structs.replace(job, workflow=self.id) for job in jobs],
            key=None if key is None else f"added to workflow {self.id}: {key}",
            reopen=reopen,
        )
        # It answers with ids, so it cannot wait in a spool.
        return await self._service.submitting(None, False).submit(request)

    async def wait(self, timeout: DurationLike | None = None) -> Workflow:
        """Waits until the workflow has ended; raises `ResultTimeout` when the time is up."""
        seconds = wait_seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    workflow = await self.info(WAIT_SECONDS)
                    if workflow.state in ENDS:
                        return workflow
        except WaitTimeout:
            raise  # in virtual time, where no other is up
        except TimeoutError:
            raise await self._timed_out(seconds) from None

    async def complete(self, timeout: DurationLike | None = None) -> Workflow:
        """Waits as `wait` does; raises `WorkflowFailed` if the workflow did not complete."""
        workflow = await self.wait(timeout)
        if workflow.state != "completed":
            raise WorkflowFailed(workflow, await self._some(FAILED))
        return workflow

    async def cancel(self, reason: str = "Canceled") -> bool:
        """Cancels the workflow and returns whether that changed anything."""
        path, request = f"/api/v1/workflows/{self.id}/cancel", CancelWorkflow(reason=reason)
        sent = self._service.repeat("POST", path, CanceledWorkflow, request, given_at=self._fence)
        return (await sent).applied

    async def retry(self, failed: bool = True) -> "AsyncWorkflow":
        """Retries its failed jobs, or all of it as a new workflow; returns that workflow."""
        path = f"/api/v1/workflows/{self.id}/retry"
        request = RetryWorkflow(failed=failed)
        done = await self._service.ask("POST", path, RetriedWorkflow, request, given_at=self._fence)
        return AsyncWorkflow(self._service, done.id, done.at or self._given_at)

    async def reactions(self) -> list[ReactionInfo]:
        """Returns the reactions to its end, done and planned."""
        path = f"/api/v1/workflows/{self.id}/reactions"
        return (await self._service.ask("GET", path, ReactionList, given_at=self._fence)).reactions

    @property
    def _fence(self) -> int | None:
        """What lets a server refuse a call if the id stands for another workflow by now."""
        return self._given_at or None

    async def _check_own(self) -> None:
        """Raises `Lost` if the id stands for another workflow by now, as after a lost backup."""
        if self._given_at:
            await self.info()

    async def _timed_out(self, timeout: float | None) -> ResultTimeout:
        """Returns the error that names a job which has not ended, and why it has not."""
        message = f"workflow {self.id} has not ended after {timeout:g} s"
        try:
            jobs = [job.id for job in await self._some(OPEN)]
        except WindlassError:
            return ResultTimeout(message)
        if jobs:
            first = min(jobs)
            message += f"; job {first} has not{await why_waiting(self._service, first)}"
        return ResultTimeout(message, jobs)

    async def _some(self, states: Sequence[str]) -> list[Job]:
        query = {"workflow": self.id, "state": list(states), "limit": SHOWN}
        return (await self._service.ask("GET", "/api/v1/jobs", JobList, **query)).jobs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AsyncWorkflow):
            return NotImplemented
        return self.id == other.id and self._service.installation == other._service.installation

    def __hash__(self) -> int:
        return hash((self._service.installation, self.id))

    def __repr__(self) -> str:
        return f"<workflow {self.id}>"


async def listed(
    ask: Callable[..., Awaitable[PageT]],
    rows: Callable[[PageT], list[T]],
    query: Mapping[str, Any],
    limit: float = math.inf,
) -> list[T]:
    """Returns the rows of all pages, at most `limit` of them."""
    found: list[T] = []
    after: str | None = None
    while len(found) < limit:
        size = min(limit - len(found), PAGE)
        page = await ask(**query, limit=size, after=after)
        found += rows(page)
        after = page.next
        if after is None:
            break
    return found
