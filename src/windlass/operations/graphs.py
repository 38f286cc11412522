"""Graphs, progress, timelines and comparisons of workflows."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec

from windlass.domain.access.rights import Action, sees
from windlass.domain.graphs.compare import Comparison
from windlass.domain.graphs.compare import compare as compare_sides
from windlass.domain.graphs.timeline import Run, Window, lay_out
from windlass.domain.lifecycle.states import parse_state
from windlass.domain.rows.records import Attempt, WorkflowRow
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.ids import Cursor, Id
from windlass.engine.graphs import CHUNK, Loaded
from windlass.messages.graphs import (
    GraphStates,
    WorkflowComparison,
    WorkflowGraph,
    WorkflowProgress,
    WorkflowTimeline,
)
from windlass.messages.jobs import JobList
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.graph_rendering import (
    Rendered,
    show_comparison,
    show_progress,
    sides_of,
    with_arguments,
)
from windlass.ports.loop_time import aside
from windlass.store.sql.transaction import ReadTx

Lanes = Annotated[int, msgspec.Meta(ge=1, le=200)]
Group = Annotated[int, msgspec.Meta(ge=1, le=200)]
Differences = Annotated[int, msgspec.Meta(ge=1, le=500)]

routes = Routes("/api/v1/workflows", "workflows")

MAX_OPEN: Final = 50
MAX_EARLIER: Final = 20_000  # jobs whose earlier attempts are read
NO_WORKER: Final = "no worker"


@routes.get("/{workflow:int}/graph", needs=Action.READ_JOBS, costly=True)
async def graph(
    call: Call, workflow: Id, opened: list[str] | None = None, reveal: Cursor = 0
) -> WorkflowGraph:
    """Returns the graph of a workflow, laid out, with these groups open.

    `reveal` opens the groups around a job. A bounded number of nodes and edges is shown.
    """
    return (await _rendered(call, workflow, opened or (), reveal)).graph()


@routes.get("/{workflow:int}/graph/states", needs=Action.READ_JOBS)
async def graph_states(
    call: Call, workflow: Id, opened: list[str] | None = None, reveal: Cursor = 0
) -> GraphStates:
    """Returns the states of what the graph shows with these groups open, without positions."""
    return (await _rendered(call, workflow, opened or (), reveal)).states()


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

    Without `group`, the page lists the jobs of the whole graph.
    """
    states = {found.code for text in state or () for found in parse_state(text)}
    _, loaded = await _loaded(call, workflow)
    members = await call.services.graphs.members(loaded, group)
    if members is None:
        raise NotFound("group", group)
    found = [one for one in members if not states or loaded.states[one] in states]
    end = after + limit
    jobs = [loaded.graph.jobs[one] for one in found[after:end]]
    shown = await call.services.queries.some_jobs(jobs, call.who)
    return JobList(shown, str(end) if end < len(found) else None, len(jobs))


@routes.get("/{workflow:int}/progress", needs=Action.READ_JOBS)
async def progress(call: Call, workflow: Id) -> WorkflowProgress:
    """Returns how far a workflow is, when it may end, its longest chain, and open approvals."""
    _, loaded = await _loaded(call, workflow)
    return show_progress(loaded, await call.services.graphs.figures(loaded))


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
    _, loaded = await _loaded(call, workflow)
    if by not in ("worker", "name"):
        raise InvalidInput("by", "worker or name", by)
    now = await call.services.engine.now()
    runs, left_out = await _runs(call, loaded, by, now)
    window = Window(since, until, first, limit)
    found = await aside(loaded.weight, lambda: lay_out(runs, window))
    return WorkflowTimeline(
        workflow=workflow, now=now, runs_left_out=left_out, **msgspec.structs.asdict(found)
    )


@routes.get("/compare", needs=Action.READ_JOBS, costly=True)
async def compare(call: Call, a: Id, b: Id, limit: Differences = 100) -> WorkflowComparison:
    """Returns what two workflows differ in, job by job, the largest differences first."""
    both = [await _loaded(call, workflow) for workflow in (a, b)]
    rows, runs = [row for row, _ in both], [loaded for _, loaded in both]
    digests = [await call.services.graphs.digests(loaded) for loaded in runs]

    def work() -> Comparison:
        one, other = map(sides_of, runs, digests)
        return compare_sides(one, other)

    found = await aside(sum(loaded.weight for loaded in runs), work)
    shown = found.differences[:limit]
    ids = [side.job for each in shown if each.arguments_differ for side in (each.a, each.b) if side]
    specs = await call.services.engine.store.read(lambda tx: tx.jobs.specs(ids)) if ids else {}
    jobs = [with_arguments(each, specs, runs) for each in shown]
    return show_comparison(rows, runs, found, jobs)


async def _loaded(call: Call, workflow: int) -> tuple[WorkflowRow, Loaded]:
    """Returns a workflow with its graph; raises `NotFound` if the caller may not see it."""
    rows = await call.services.engine.store.read(lambda tx: tx.workflows.read([workflow]))
    row = rows.get(workflow)
    if row is None or not sees(call.who, row.namespace):
        raise NotFound("workflow", workflow)
    return row, await call.services.graphs.loaded(workflow)


async def _rendered(call: Call, workflow: int, opened: Sequence[str], reveal: int) -> Rendered:
    """Returns the graph with these groups open, and those around the job `reveal`."""
    if len(opened) > MAX_OPEN:
        raise InvalidInput("opened", f"at most {MAX_OPEN} groups", len(opened))
    row, loaded = await _loaded(call, workflow)
    graphs = call.services.graphs
    view = await graphs.view(loaded, opened, [reveal] if reveal else ())
    counts = await graphs.counts(loaded, view)
    figures = await graphs.known_figures(loaded)
    now = await call.services.engine.now()
    chain = () if figures is None else figures.chain.jobs
    return Rendered(row, loaded, view, counts, chain, now)


async def _runs(call: Call, loaded: Loaded, by: str, now: int) -> tuple[list[Run], int]:
    """Returns all attempts that started, and of how many jobs earlier ones were left out."""
    graph = loaded.graph
    again = [job for job, n in zip(graph.jobs, loaded.attempts, strict=True) if n > 1]
    replaced = await call.services.graphs.moments(list(loaded.superseded[:MAX_EARLIER]))
    again += [one.job for one in replaced if one.attempt > 1]
    store, earlier = call.services.engine.store, list[Attempt]()
    for first in range(0, min(len(again), MAX_EARLIER), CHUNK):
        some = again[first : first + CHUNK]
        rows = await store.read(partial(_attempts, jobs=some))
        earlier += [row for found in rows.values() for row in found]
    left_out = max(0, len(loaded.superseded) - MAX_EARLIER)
    left_out += max(0, len(again) - MAX_EARLIER)
    workers = {*loaded.workers, *(one.worker for one in earlier)}
    workers |= {one.worker or 0 for one in replaced}
    names = await store.read(lambda tx: tx.views.worker_names(sorted(workers - {0})))

    def lane(job: int, worker: int) -> str:
        if by == "worker":
            return names.get(worker, NO_WORKER if not worker else f"worker {worker}")
        number = graph.index.get(job)
        return "retried" if number is None else graph.stems[number]

    def work() -> list[Run]:
        runs = [
            Run(job, attempt, lane(job, worker), start, end or now, state)
            for job, attempt, worker, start, end, state in zip(
                graph.jobs, loaded.attempts, loaded.workers, loaded.started,
                loaded.finished, loaded.states, strict=True,
            )
            if start
        ]  # fmt: skip
        runs += [
            Run(m.job, m.attempt, lane(m.job, m.worker or 0), m.started_at,
                m.finished_at or now, m.state)
            for m in replaced
            if m.started_at
        ]  # fmt: skip
        runs += [
            Run(a.job, a.number, lane(a.job, a.worker), a.started_at, a.finished_at, a.state)
            for a in earlier
            if a.started_at
        ]
        return runs

    return await aside(loaded.weight, work), left_out


async def _attempts(tx: ReadTx, jobs: Sequence[int]) -> dict[int, list[Attempt]]:
    return await tx.jobs.attempts(jobs)
