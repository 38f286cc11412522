"""The public client: submit jobs, wait for them, read their logs.

`AsyncClient` does the work; `Client` is the same for programs without an event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from windlass.client.handles import AsyncJob, JobFailed
from windlass.client.service import HttpService, Service
from windlass.client.settings import find_server, trust_for
from windlass.client.transport import Transport
from windlass.domain.errors import Conflict, InvalidInput
from windlass.tasks import request as request_of
from windlass.wire.jobs import (
    CancelReply,
    CancelRequest,
    Job,
    JobRequest,
    NewWorkflow,
    SubmitRequest,
)

T = TypeVar("T")

__all__ = ["AsyncClient", "AsyncJob", "Client", "JobFailed", "JobHandle"]


class AsyncClient:
    """One server, seen from a program with an event loop.

    Without arguments it finds the server by WINDLASS_SERVER and WINDLASS_TOKEN, else the
    one that `windlass up` started here; over https it trusts the authorities in the file that
    WINDLASS_TLS_CA names, else those of the system. A `service` is asked instead of any server.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        data: Path | None = None,
        *,
        service: Service | None = None,
    ) -> None:
        if service is None:
            found = find_server(server, token, data)
            trust = trust_for(found.server)
            service = HttpService(Transport(found.server, found.token, trust=trust))
        self._service = service

    @property
    def transport(self) -> Transport:
        """For calls this class has no method for."""
        if not isinstance(self._service, HttpService):
            raise Conflict("no_server", "this client works without a server")
        return self._service.transport

    async def submit(self, task: Any, *args: Any, **kwargs: Any) -> AsyncJob:
        """Submit a function marked with `@windlass.task`, a task by name, or a `JobRequest`."""
        (job,) = await self.submit_many([_request(task, args, kwargs)])
        return job

    async def submit_many(
        self, jobs: Sequence[JobRequest], workflow: str | None = None
    ) -> list[AsyncJob]:
        """Submit jobs, all or none of them; optionally as a new workflow."""
        new = None if workflow is None else NewWorkflow(name=workflow)
        request = SubmitRequest(jobs=list(jobs), workflow=new)
        reply = await self._service.submit(request)
        return [AsyncJob(self._service, job) for job in reply.ids]

    def job(self, job: int) -> AsyncJob:
        """A handle on a job that was submitted before."""
        return AsyncJob(self._service, job)

    async def jobs(self, limit: int = 100, **filters: Any) -> list[Job]:
        """The newest jobs that pass the filters (`state`, `queue`, `label`…)."""
        found: list[Job] = []
        after: str | None = None
        while len(found) < limit:
            query = {**filters, "limit": min(limit - len(found), 1_000), "after": after}
            page = await self._service.jobs(query)
            found += page.jobs
            after = page.next
            if after is None:
                break
        return found

    async def cancel(self, jobs: Sequence[int], reason: str = "Canceled") -> CancelReply:
        """Cancel jobs."""
        return await self._service.cancel(CancelRequest(ids=list(jobs), reason=reason))

    async def open(self) -> None:
        """Make ready; the first call does so as well."""
        await self._service.open()

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Runner(Protocol):
    """Runs coroutines for a program without an event loop."""

    def run(self, coro: Coroutine[Any, Any, T], /) -> T: ...

    def close(self) -> None: ...


class Client:
    """One server, seen from a program without an event loop.

    A given `client` lives in the loop of its `runner`.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        data: Path | None = None,
        *,
        client: AsyncClient | None = None,
        runner: Runner | None = None,
    ) -> None:
        self._runner = runner or asyncio.Runner()
        self._client = client or AsyncClient(server, token, data)

    def submit(self, task: Any, *args: Any, **kwargs: Any) -> "JobHandle":
        """Submit a function marked with `@windlass.task`, a task by name, or a `JobRequest`."""
        return JobHandle(self, self.run(self._client.submit(task, *args, **kwargs)))

    def submit_many(
        self, jobs: Sequence[JobRequest], workflow: str | None = None
    ) -> "list[JobHandle]":
        """Submit jobs, all or none of them; optionally as a new workflow."""
        made = self.run(self._client.submit_many(jobs, workflow))
        return [JobHandle(self, job) for job in made]

    def job(self, job: int) -> "JobHandle":
        """A handle on a job that was submitted before."""
        return JobHandle(self, self._client.job(job))

    def jobs(self, limit: int = 100, **filters: Any) -> list[Job]:
        """The newest jobs that pass the filters (`state`, `queue`, `label`…)."""
        return self.run(self._client.jobs(limit, **filters))

    def cancel(self, jobs: Sequence[int], reason: str = "Canceled") -> CancelReply:
        """Cancel jobs."""
        return self.run(self._client.cancel(jobs, reason))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the asynchronous client to its end."""
        return self._runner.run(work)

    @property
    def asynchronous(self) -> AsyncClient:
        """The client behind this one."""
        return self._client

    def close(self) -> None:
        """Close the connections."""
        self.run(self._client.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class JobHandle:
    """A submitted job."""

    def __init__(self, client: Client, job: AsyncJob) -> None:
        self._client = client
        self._job = job

    @property
    def id(self) -> int:
        """The job's number."""
        return self._job.id

    def info(self) -> Job:
        """The job as it stands."""
        return self._client.run(self._job.info())

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until the job has ended; raises `TimeoutError` when the time is up."""
        return self._client.run(self._job.wait(timeout))

    def result(self, timeout: float | None = None) -> Any:
        """The job's result; raises `JobFailed` if it did not complete."""
        return self._client.run(self._job.result(timeout))

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancel the job; whether that changed anything."""
        return self._client.run(self._job.cancel(reason))

    def retry(self) -> "JobHandle":
        """Supersede the ended job by a new one."""
        return JobHandle(self._client, self._client.run(self._job.retry()))

    def logs(self, follow: bool = False) -> Iterator[bytes]:
        """The job's log, piece by piece; with `follow` until it ends."""
        stream = self._job.logs(follow)
        while True:
            chunk = self._client.run(_next(stream))
            if chunk is None:
                return
            yield chunk

    def download(self, artifact: str, path: Path) -> None:
        """Keep an artifact of the job in a file; nothing is left there if that fails."""
        self._client.run(self._job.download(artifact, path))

    def __repr__(self) -> str:
        return f"<job {self.id}>"


def _request(task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobRequest:
    """The job that a call of `submit` means."""
    if isinstance(task, JobRequest):
        if args or kwargs:
            raise InvalidInput("args", "inside the request", "more beside it")
        return task
    if isinstance(task, str):
        if args:
            raise InvalidInput("args", "given by name", "arguments by position")
        return JobRequest(task=task, args=kwargs)
    return request_of(task, *args, **kwargs)


async def _next(stream: AsyncIterator[bytes]) -> bytes | None:
    async for chunk in stream:
        return chunk
    return None
