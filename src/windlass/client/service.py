"""What clients ask of a scheduler, and how a server is asked for it over HTTP.

An embedded client asks the engine in its own process instead (`windlass/embedded`), in
the same words: handles and clients do not know which of the two answers.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from windlass.client.schedules import HttpPlanning, Planning
from windlass.client.transport import Transport
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.values.errors import NotFound, Overloaded, StoreUnavailable, Unreachable
from windlass.ports.loop_time import pass_time
from windlass.wire.bulk import BulkReply, BulkRequest
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    Job,
    JobList,
    RetryReply,
    SubmitReply,
    SubmitRequest,
)
from windlass.wire.workers import WorkerList
from windlass.wire.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    Workflow,
)

T = TypeVar("T")

PAUSES_S: Final = (0.1, 0.3, 1.0, 3.0, 6.0)  # before a submission is sent again


class Service(Protocol):
    """Raises the errors of `windlass.domain.values.errors`."""

    async def open(self) -> None:
        """Opens the connections; the first call does so too."""
        ...

    async def submit(self, request: SubmitRequest) -> SubmitReply: ...

    async def job(self, job: int) -> Job: ...

    async def wait(self, job: int, seconds: float) -> Job:
        """Returns the job once it has ended, or as it is when the time is up."""
        ...

    async def jobs(self, query: Mapping[str, Any]) -> JobList:
        """Returns a page of jobs; `query` has the filters, `after` and `limit`."""
        ...

    async def cancel(self, request: CancelRequest) -> CancelReply: ...

    async def cancel_one(self, job: int, reason: str) -> CanceledJob: ...

    async def retry(self, job: int) -> RetryReply: ...

    async def bulk(self, request: BulkRequest) -> BulkReply:
        """Changes or counts some of the jobs that a filter finds."""
        ...

    async def explain(self, job: int) -> Explanation:
        """Returns why a job waits."""
        ...

    async def explain_worker(self, worker: str) -> WorkerExplanation:
        """Returns why the worker of this name or id is idle; raises `NotFound`."""
        ...

    async def time_spent(self, job: int) -> TimeSpent:
        """Returns where a job's time went."""
        ...

    async def workflow(self, workflow: int) -> Workflow: ...

    async def wait_workflow(self, workflow: int, seconds: float) -> Workflow:
        """Returns the workflow once it has ended, or as it is when the time is up."""
        ...

    async def cancel_workflow(self, workflow: int, reason: str) -> CanceledWorkflow: ...

    async def retry_workflow(self, workflow: int, failed: bool) -> RetriedWorkflow: ...

    @property
    def planning(self) -> Planning:
        """Templates and schedules."""
        ...

    def log(self, job: int, follow: bool) -> AsyncIterator[bytes]: ...

    def artifact(self, job: int, name: str) -> AsyncIterator[bytes]:
        """Yields the bytes of an artifact; raises `NotFound`."""
        ...

    async def close(self) -> None: ...


def find_worker(worker: str, known: Iterable[tuple[int, str]]) -> int:
    """Returns the id of the worker with this name, else with this number; raises `NotFound`."""
    by_name = {name: number for number, name in known}
    if worker in by_name:
        return by_name[worker]
    if worker.isdigit() and int(worker) in by_name.values():
        return int(worker)
    raise NotFound("worker", worker)


def fresh_key() -> str:
    """Returns a new unique key."""
    return os.urandom(16).hex()


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeats a call while its outcome is unknown; a call that no server got fails at once."""
    heard = False
    for pause_s in PAUSES_S:
        try:
            return await call()
        except Unreachable as error:
            heard = heard or error.sent
            if not heard:
                raise
        except (StoreUnavailable, Overloaded):
            heard = True
        await pass_time(pause_s)
    return await call()


class HttpService:
    """Implements `Service`."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.planning = HttpPlanning(transport, insist, fresh_key)

    async def open(self) -> None:
        """Connections are made as they are needed."""

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Sends a submission with a key, so that it can be repeated if no answer came."""
        if request.jobs and request.key is None:
            request = msgspec.structs.replace(request, key=fresh_key())
        return await insist(
            lambda: self.transport.call("POST", "/api/v1/jobs", SubmitReply, request)
        )

    async def job(self, job: int) -> Job:
        return await self.transport.call("GET", f"/api/v1/jobs/{job}", Job)

    async def wait(self, job: int, seconds: float) -> Job:
        path = f"/api/v1/jobs/{job}/wait"
        return await self.transport.call("GET", path, Job, query={"timeout": seconds})

    async def jobs(self, query: Mapping[str, Any]) -> JobList:
        return await self.transport.call("GET", "/api/v1/jobs", JobList, query=query)

    async def cancel(self, request: CancelRequest) -> CancelReply:
        return await self.transport.call("POST", "/api/v1/jobs/cancel", CancelReply, request)

    async def cancel_one(self, job: int, reason: str) -> CanceledJob:
        path = f"/api/v1/jobs/{job}/cancel"
        return await self.transport.call("POST", path, CanceledJob, query={"reason": reason})

    async def retry(self, job: int) -> RetryReply:
        return await self.transport.call("POST", f"/api/v1/jobs/{job}/retry", RetryReply)

    async def bulk(self, request: BulkRequest) -> BulkReply:
        return await self.transport.call("POST", "/api/v1/jobs/bulk", BulkReply, request)

    async def explain(self, job: int) -> Explanation:
        return await self.transport.call("GET", f"/api/v1/jobs/{job}/explain", Explanation)

    async def explain_worker(self, worker: str) -> WorkerExplanation:
        found = await self.transport.call("GET", "/api/v1/workers", WorkerList)
        number = find_worker(worker, [(one.id, one.name) for one in found.workers])
        path = f"/api/v1/workers/{number}/explain"
        return await self.transport.call("GET", path, WorkerExplanation)

    async def time_spent(self, job: int) -> TimeSpent:
        return await self.transport.call("GET", f"/api/v1/jobs/{job}/time", TimeSpent)

    async def workflow(self, workflow: int) -> Workflow:
        return await self.transport.call("GET", f"/api/v1/workflows/{workflow}", Workflow)

    async def wait_workflow(self, workflow: int, seconds: float) -> Workflow:
        path = f"/api/v1/workflows/{workflow}/wait"
        return await self.transport.call("GET", path, Workflow, query={"timeout": seconds})

    async def cancel_workflow(self, workflow: int, reason: str) -> CanceledWorkflow:
        path = f"/api/v1/workflows/{workflow}/cancel"
        return await self.transport.call(
            "POST", path, CanceledWorkflow, CancelWorkflow(reason=reason)
        )

    async def retry_workflow(self, workflow: int, failed: bool) -> RetriedWorkflow:
        path = f"/api/v1/workflows/{workflow}/retry"
        return await self.transport.call(
            "POST", path, RetriedWorkflow, RetryWorkflow(failed=failed)
        )

    def log(self, job: int, follow: bool) -> AsyncIterator[bytes]:
        query = {"follow": "true" if follow else None}
        return self.transport.stream(f"/api/v1/jobs/{job}/log", query)

    def artifact(self, job: int, name: str) -> AsyncIterator[bytes]:
        return self.transport.stream(f"/api/v1/jobs/{job}/artifacts/{quote(name)}")

    async def close(self) -> None:
        await self.transport.close()
