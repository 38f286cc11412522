"""Routes about the graph of a workflow, its progress and timeline, and two runs side by side."""

from typing import Annotated

import msgspec

from windlass.api.graphs.graphs import Page
from windlass.domain.access.rights import Action
from windlass.domain.graphs.timeline import Window
from windlass.domain.lifecycle.states import parse_state
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.wire.graphs.figures import WorkflowComparison, WorkflowProgress, WorkflowTimeline
from windlass.wire.graphs.graph import GraphStates, WorkflowGraph
from windlass.wire.jobs import JobList
from windlass.wire.numbers import Cursor, Id

Lanes = Annotated[int, msgspec.Meta(ge=1, le=200)]
Group = Annotated[int, msgspec.Meta(ge=1, le=200)]
Differences = Annotated[int, msgspec.Meta(ge=1, le=500)]

routes = Routes("/api/v1/workflows", "workflows")


@routes.get("/{workflow:int}/graph", needs=Action.READ_JOBS, costly=True)
async def graph(
    call: Call, workflow: Id, opened: list[str] | None = None, reveal: Cursor = 0
) -> WorkflowGraph:
    """Returns the graph of a workflow, laid out, with these groups open.

    `reveal` opens the groups around a job. A bounded number of nodes and edges is shown.
    """
    return await call.services.graphs.graph(workflow, opened or (), reveal, call.who)


@routes.get("/{workflow:int}/graph/states", needs=Action.READ_JOBS)
async def graph_states(
    call: Call, workflow: Id, opened: list[str] | None = None, reveal: Cursor = 0
) -> GraphStates:
    """Returns the states of what the graph shows with these groups open, without positions."""
    return await call.services.graphs.states(workflow, opened or (), reveal, call.who)


@routes.get("/{workflow:int}/graph/jobs", needs=Action.READ_JOBS)
async def graph_jobs(
    call: Call,
    workflow: Id,
    group: str = "",
    state: list[str] | None = None,
    after: Cursor = 0,
    limit: Group = 100,
) -> JobList:
    """Returns a page of the jobs of a group of the graph, without those that were superseded.

    Without `group`, those of the whole graph.
    """
    states = {found.code for text in state or () for found in parse_state(text)}
    jobs, following = await call.services.graphs.jobs_of(
        workflow, group, states, Page(after, limit), call.who
    )
    shown = await call.services.queries.some_jobs(jobs, call.who)
    return JobList(shown, None if following is None else str(following), len(jobs))


@routes.get("/{workflow:int}/progress", needs=Action.READ_JOBS)
async def progress(call: Call, workflow: Id) -> WorkflowProgress:
    """Returns how far a workflow is, when it may end, its longest chain, and open approvals."""
    return await call.services.graphs.progress(workflow, call.who)


@routes.get("/{workflow:int}/timeline", needs=Action.READ_JOBS, costly=True)
async def timeline(
    call: Call,
    workflow: Id,
    by: str = "worker",
    since: Cursor = 0,
    until: Cursor = 0,
    first: Cursor = 0,
    limit: Lanes = 100,
) -> WorkflowTimeline:
    """Returns when the attempts of a workflow ran, in lanes by worker or by name.

    `since` and `until` are milliseconds since 1970; bars are joined where they are too short to be
    told apart in that time.
    """
    window = Window(since, until, first, limit)
    return await call.services.graphs.timeline(workflow, by, window, call.who)


@routes.get("/compare", needs=Action.READ_JOBS, costly=True)
async def compare(call: Call, a: Id, b: Id, limit: Differences = 100) -> WorkflowComparison:
    """Returns what two workflows differ in, job by job, the largest differences first."""
    return await call.services.graphs.compare(a, b, limit, call.who)
