"""The public client: submit jobs, wait for them, read their logs.

`AsyncClient` does the work; `Client` is the same for programs without an event loop.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from windlass.client.blocking import JobHandle, Workflow, WorkflowHandle
from windlass.client.builder import AsyncWorkflowBlock, new_workflow, request_for
from windlass.client.bulk import edit_parts
from windlass.client.handles import AsyncJob, JobFailed
from windlass.client.pools import HttpPools
from windlass.client.reconnect import RECONNECT_SECONDS, Reconnect
from windlass.client.schedules import Planning, split_reference
from windlass.client.service import HttpService, Service
from windlass.client.settings import find_server, trust_for
from windlass.client.transport import Transport
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict
from windlass.wire.bulk import Action, BulkReply, Where
from windlass.wire.jobs import (
    CancelReply,
    CancelRequest,
    Job,
    NewWorkflow,
    SubmitReply,
    SubmitRequest,
)
from windlass.wire.schedules import StartRequest

T = TypeVar("T")

__all__ = ["AsyncClient", "AsyncJob", "Client", "JobFailed", "JobHandle", "Workflow"]


class AsyncClient:
    """One server, seen from a program with an event loop.

    Without arguments it finds the server by WINDLASS_SERVER and WINDLASS_TOKEN, else the
    one that `windlass up` started here; over https it trusts the authorities in the file that
    WINDLASS_TLS_CA names, else those of the system. If the server goes away, calls that are safe
    to repeat are repeated for `reconnect` seconds. A `service` is asked instead of any server.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        data: Path | None = None,
        *,
        reconnect: float = RECONNECT_SECONDS,
        service: Service | None = None,
    ) -> None:
        if service is None:
            found = find_server(server, token, data)
            trust = trust_for(found.server)
            transport = Transport(found.server, found.token, trust=trust, renew=found.renew)
            service = HttpService(transport, Reconnect(reconnect))
        self._service = service

    @property
    def transport(self) -> Transport:
        """For calls this class has no method for."""
        if not isinstance(self._service, HttpService):
            raise Conflict("no_server", "this client works without a server")
        return self._service.transport

    async def submit(self, task: Any, *args: Any, **kwargs: Any) -> AsyncJob:
        """Submits a function marked with `@windlass.task`, a task by name, or a `JobSpec`."""
        (job,) = await self.submit_many([request_for(task, args, kwargs)])
        return job

    async def submit_many(
        self, jobs: Sequence[JobSpec], workflow: str | None = None
    ) -> list[AsyncJob]:
        """Submits jobs, all or none of them; optionally as a new workflow."""
        new = None if workflow is None else NewWorkflow(name=workflow)
        request = SubmitRequest(jobs=list(jobs), workflow=new)
        reply = await self._service.submit(request)
        return [AsyncJob(self._service, job) for job in reply.ids]

    async def submit_workflow(self, workflow: NewWorkflow, jobs: Sequence[JobSpec]) -> SubmitReply:
        """Submits an expanded workflow as a whole."""
        return await self._service.submit(SubmitRequest(jobs=list(jobs), workflow=workflow))

    def job(self, job: int) -> AsyncJob:
        """Returns a handle on an existing job."""
        return AsyncJob(self._service, job)

    @overload
    def workflow(self, workflow: int, /) -> AsyncWorkflow: ...
    @overload
    def workflow(self, workflow: str, /, **options: Any) -> AsyncWorkflowBlock: ...

    def workflow(self, workflow: int | str, /, **options: Any) -> AsyncWorkflow:
        """Returns a workflow by its id, or by name a new one for an `async with` block.

        `options` are those of a workflow: `priority`, `key`, `key_for`, `fail_fast`,
        `labels`, `namespace`, `on_success`, `on_failure`, `on_end`.
        """
        if isinstance(workflow, int):
            return AsyncWorkflow(self._service, workflow)
        return AsyncWorkflowBlock(self._service, new_workflow(workflow, options))

    async def start_template(
        self,
        template: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        priority: int | str | None = None,
        key: str | None = None,
        key_for: float | str | None = None,
        namespace: str | None = None,
    ) -> AsyncWorkflow:
        """Starts a workflow from a template, `name` or `name@version`."""
        name, version = split_reference(template)
        request = StartRequest(
            parameters=dict(parameters or {}),
            priority=priority,
            key=key,
            key_for=key_for,
            version=version,
        )
        reply = await self.planning.start_template(name, request, namespace)
        return AsyncWorkflow(self._service, reply.workflow)

    @property
    def pools(self) -> HttpPools:
        """Pools of workers, which only servers have."""
        return HttpPools(self.transport)

    @property
    def planning(self) -> Planning:
        """Templates and schedules: put, look at, pause, run, remove."""
        return self._service.planning

    async def jobs(self, limit: int = 100, **filters: Any) -> list[Job]:
        """Returns the newest jobs that pass the filters (`state`, `queue`, `label`…)."""
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

    async def explain(self, job: int) -> Explanation:
        """Returns why a job waits: for what, who could run it, what would help."""
        return await self._service.explain(job)

    async def explain_worker(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker, by its name or id, is idle."""
        return await self._service.explain_worker(str(worker))

    async def cancel(self, jobs: Sequence[int], reason: str = "Canceled") -> CancelReply:
        """Cancels jobs."""
        return await self._service.cancel(CancelRequest(ids=list(jobs), reason=reason))

    async def edit_many(self, action: Action, where: Where, **options: Any) -> BulkReply:
        """Cancels, retries or prioritizes all jobs that pass a filter, part by part.

        `options` are `reason`, `adjustment`, and `dry_run`, which only counts them.
        """
        return await edit_parts(self._service, action, where, options)

    async def open(self) -> None:
        """Opens the connections; the first call does so too."""
        await self._service.open()

    async def close(self) -> None:
        """Closes the connections."""
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

    If the server goes away, calls that are safe to repeat are repeated for `reconnect` seconds.
    A given `client` lives in the loop of its `runner`.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        data: Path | None = None,
        *,
        reconnect: float = RECONNECT_SECONDS,
        client: AsyncClient | None = None,
        runner: Runner | None = None,
    ) -> None:
        self._runner = runner or asyncio.Runner()
        self._client = client or AsyncClient(server, token, data, reconnect=reconnect)

    def submit(self, task: Any, *args: Any, **kwargs: Any) -> JobHandle:
        """Submits a function marked with `@windlass.task`, a task by name, or a `JobSpec`."""
        return JobHandle(self, self.run(self._client.submit(task, *args, **kwargs)))

    def submit_many(self, jobs: Sequence[JobSpec], workflow: str | None = None) -> list[JobHandle]:
        """Submits jobs, all or none of them; optionally as a new workflow."""
        made = self.run(self._client.submit_many(jobs, workflow))
        return [JobHandle(self, job) for job in made]

    def job(self, job: int) -> JobHandle:
        """Returns a handle on an existing job."""
        return JobHandle(self, self._client.job(job))

    @overload
    def workflow(self, workflow: int, /) -> WorkflowHandle: ...
    @overload
    def workflow(self, workflow: str, /, **options: Any) -> Workflow: ...

    def workflow(self, workflow: int | str, /, **options: Any) -> WorkflowHandle:
        """Returns a workflow by its id, or by name a new one for a `with` block.

        `options` are those of a workflow: `priority`, `key`, `key_for`, `fail_fast`,
        `labels`, `namespace`, `on_success`, `on_failure`, `on_end`.
        """
        if isinstance(workflow, int):
            return WorkflowHandle(self, self._client.workflow(workflow))
        return Workflow(self, self._client.workflow(workflow, **options))

    def start_template(
        self, template: str, parameters: Mapping[str, Any] | None = None, **options: Any
    ) -> WorkflowHandle:
        """Starts a workflow from a template; `options` are `priority`, `key`, `namespace`."""
        made = self.run(self._client.start_template(template, parameters, **options))
        return WorkflowHandle(self, made)

    def jobs(self, limit: int = 100, **filters: Any) -> list[Job]:
        """Returns the newest jobs that pass the filters (`state`, `queue`, `label`…)."""
        return self.run(self._client.jobs(limit, **filters))

    def explain(self, job: int) -> Explanation:
        """Returns why a job waits: for what, who could run it, what would help."""
        return self.run(self._client.explain(job))

    def explain_worker(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker, by its name or id, is idle."""
        return self.run(self._client.explain_worker(worker))

    def cancel(self, jobs: Sequence[int], reason: str = "Canceled") -> CancelReply:
        """Cancels jobs."""
        return self.run(self._client.cancel(jobs, reason))

    def edit_many(self, action: Action, where: Where, **options: Any) -> BulkReply:
        """Cancels, retries or prioritizes all jobs that pass a filter; see `AsyncClient`."""
        return self.run(self._client.edit_many(action, where, **options))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the asynchronous client to its end."""
        return self._runner.run(work)

    @property
    def asynchronous(self) -> AsyncClient:
        """The client behind this one."""
        return self._client

    def close(self) -> None:
        """Closes the connections."""
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
