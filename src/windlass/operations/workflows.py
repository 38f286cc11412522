"""Routes about workflows; they are created by submitting jobs."""

from windlass.api.parse import workflow_filter
from windlass.api.schedules.render import show_reaction
from windlass.domain.access.rights import Action
from windlass.domain.rows.views import JobFilter
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.jobs import PageSize, Seconds
from windlass.wire.jobs import JobList
from windlass.wire.numbers import Cursor, Id
from windlass.wire.schedules import ReactionList
from windlass.wire.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    Workflow,
    WorkflowList,
)

routes = Routes("/api/v1/workflows", "workflows")


@routes.get("", needs=Action.READ_JOBS)
async def list_workflows(
    call: Call,
    state: list[str] | None = None,
    name: str | None = None,
    namespace: str | None = None,
    label: list[str] | None = None,
    key: str | None = None,
    text: str | None = None,
    after: Cursor = 0,
    limit: PageSize = 100,
) -> WorkflowList:
    """Returns a page of workflows, newest first; `text` is a part of the name."""
    wanted = workflow_filter(
        call.who, state=state, name=name, namespace=namespace, label=label, key=key, text=text
    )
    return await call.services.workflows.workflows(wanted, after, limit)


@routes.get("/{workflow:int}", needs=Action.READ_JOBS)
async def show(call: Call, workflow: Id) -> Workflow:
    """Returns one workflow."""
    return await call.services.workflows.workflow(workflow, call.who)


@routes.get("/{workflow:int}/jobs", needs=Action.READ_JOBS)
async def jobs(call: Call, workflow: Id, after: Cursor = 0, limit: PageSize = 100) -> JobList:
    """Returns a page of the workflow's jobs, newest first, with those that were superseded."""
    await call.services.workflows.workflow(workflow, call.who)
    place = (0, after) if after else None
    return await call.services.queries.jobs(JobFilter(workflow=workflow), place, limit)


@routes.get("/{workflow:int}/wait", needs=Action.READ_JOBS)
async def wait(call: Call, workflow: Id, timeout: Seconds = 30) -> Workflow:
    """Returns the workflow when it has ended, or as it is when the time is up."""
    return await call.services.workflows.wait(workflow, timeout, call.who)


@routes.get("/{workflow:int}/reactions", needs=Action.READ_JOBS)
async def list_reactions(call: Call, workflow: Id) -> ReactionList:
    """Returns the follow-ups, webhooks and retries of a workflow and their outcome."""
    await call.services.queries.check_workflows([workflow], call.who)
    rows = await call.services.reactions.of_workflow(workflow)
    return ReactionList([show_reaction(row) for row in rows])


@routes.post("/{workflow:int}/cancel", needs=Action.CHANGE_JOBS)
async def cancel(call: Call, workflow: Id, data: Body[CancelWorkflow]) -> CanceledWorkflow:
    """Cancels a workflow: nothing new starts, and running jobs are told to stop."""
    return await call.services.workflows.cancel(workflow, data.reason, call.who)


@routes.post("/{workflow:int}/retry", needs=Action.CHANGE_JOBS)
async def retry(call: Call, workflow: Id, data: Body[RetryWorkflow]) -> RetriedWorkflow:
    """Retries the failed jobs of a workflow, or all of it as a new workflow."""
    return await call.services.workflows.retry(workflow, data.failed, call.who)
