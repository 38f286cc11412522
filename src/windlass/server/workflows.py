"""Routes about workflows; they are made by submitting jobs."""

from typing import Annotated, Any

from litestar import Controller, Request, get, post
from litestar.params import FromQuery, JSONBody, Parameter, QueryParameter

from windlass.api.parse import workflow_filter
from windlass.api.queries import PAGE_LIMIT
from windlass.api.workflows import Workflows
from windlass.domain.roles import Role
from windlass.domain.views import JobFilter
from windlass.server.guard import identity_of
from windlass.server.services import UseQueries, UseServices
from windlass.wire.jobs import JobList
from windlass.wire.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    Workflow,
    WorkflowList,
)

Ask = Request[Any, Any, Any]
Id = Annotated[int, Parameter(ge=1, le=2**62)]


class WorkflowRoutes(Controller):
    """List, look at, wait for, cancel and retry workflows."""

    path = "/api/v1/workflows"
    tags = ("workflows",)

    @get("/", opt={"role": Role.VIEWER})
    async def list_workflows(
        self,
        request: Ask,
        services: UseServices,
        states: Annotated[list[str] | None, QueryParameter(name="state")] = None,
        name: FromQuery[str | None] = None,
        namespace: FromQuery[str | None] = None,
        label: FromQuery[list[str] | None] = None,
        key: FromQuery[str | None] = None,
        after: Annotated[int, Parameter(ge=0, le=2**62)] = 0,
        limit: Annotated[int, Parameter(ge=1, le=PAGE_LIMIT)] = 100,
    ) -> WorkflowList:
        """A page of workflows, newest first."""
        wanted = workflow_filter(
            identity_of(request), state=states, name=name, namespace=namespace, label=label,
            key=key,
        )  # fmt: skip
        return await Workflows(services.engine).workflows(wanted, after, limit)

    @get("/{workflow:int}", opt={"role": Role.VIEWER})
    async def show(self, request: Ask, workflow: Id, services: UseServices) -> Workflow:
        """One workflow."""
        return await Workflows(services.engine).workflow(workflow, identity_of(request))

    @get("/{workflow:int}/jobs", opt={"role": Role.VIEWER})
    async def jobs(
        self,
        request: Ask,
        workflow: Id,
        queries: UseQueries,
        services: UseServices,
        after: Annotated[int, Parameter(ge=0, le=2**62)] = 0,
        limit: Annotated[int, Parameter(ge=1, le=PAGE_LIMIT)] = 100,
    ) -> JobList:
        """A page of its jobs, newest first, also those that were superseded."""
        await Workflows(services.engine).workflow(workflow, identity_of(request))
        return await queries.jobs(JobFilter(workflow=workflow), after, limit)

    @get("/{workflow:int}/wait", opt={"role": Role.VIEWER})
    async def wait(
        self,
        request: Ask,
        workflow: Id,
        services: UseServices,
        timeout: Annotated[float, Parameter(ge=0, le=60)] = 30,
    ) -> Workflow:
        """The workflow once it has ended, or as it is when the time is up."""
        queries, who = Workflows(services.engine), identity_of(request)
        await queries.workflow(workflow, who)
        await services.engine.wait_workflow_ended(workflow, int(timeout * 1000))
        return await queries.workflow(workflow, who)

    @post("/{workflow:int}/cancel", opt={"role": Role.SUBMITTER}, status_code=200)
    async def cancel(
        self, request: Ask, workflow: Id, data: JSONBody[CancelWorkflow], services: UseServices
    ) -> CanceledWorkflow:
        """Cancel a workflow: nothing new starts, what runs is told to stop."""
        who = identity_of(request)
        await Workflows(services.engine).workflow(workflow, who)
        done = await services.engine.cancel_workflow(workflow, data.reason, who.name)
        return CanceledWorkflow(done.workflow, done.state, done.applied)

    @post("/{workflow:int}/retry", opt={"role": Role.SUBMITTER}, status_code=200)
    async def retry(
        self, request: Ask, workflow: Id, data: JSONBody[RetryWorkflow], services: UseServices
    ) -> RetriedWorkflow:
        """Try the failed jobs of a workflow again, or all of it as a new workflow."""
        who = identity_of(request)
        await Workflows(services.engine).workflow(workflow, who)
        done = await services.engine.retry_workflow(workflow, data.failed, who.name)
        return RetriedWorkflow(done.workflow, done.applied)
