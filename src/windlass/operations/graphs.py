"""Graphs, progress, timelines and comparisons of workflows."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec

from windlass.domain.access.rights import Action, Identity, sees
from windlass.domain.graphs.compare import Comparison
from windlass.domain.graphs.compare import compare as compare_sides
from windlass.domain.graphs.timeline import Run, Window, lay_out
from windlass.domain.lifecycle.states import parse_state
from windlass.domain.rows.records import Attempt, WorkflowRow
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.engine.engine import Engine
from windlass.engine.graphs import CHUNK, Graphs, Loaded
from windlass.messages.graphs.figures import WorkflowComparison, WorkflowProgress, WorkflowTimeline
from windlass.messages.graphs.graph import GraphStates, WorkflowGraph
from windlass.messages.jobs import JobList
from windlass.messages.numbers import Cursor, Id
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.graph_rendering import (
    Rendered,
    show_comparison,
    show_progress,
    show_timeline,
)
from windlass.operations.graph_sides import show_arguments, sides_of
from windlass.ports.loop_time import aside
from windlass.store.sql.transaction import ReadTx

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


MAX_OPEN: Final = 50
MAX_EARLIER: Final = 20_000  # jobs whose earlier attempts are read
NO_WORKER: Final = "no worker"


class Page(NamedTuple):
    """A part of a list: so many from this place on."""

    first: int
    limit: int


class WorkflowGraphs:
    """Graphs and figures; raises `NotFound` for workflows that the caller may not see."""

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store
        self._graphs = Graphs(engine.store, engine.catalog)

    async def graph(
        self, workflow: int, opened: Sequence[str], reveal: int, who: Identity
    ) -> WorkflowGraph:
        """Returns the graph with these groups open, and those around the job `reveal`."""
        return (await self._rendered(workflow, opened, reveal, who)).graph()

    async def states(
        self, workflow: int, opened: Sequence[str], reveal: int, who: Identity
    ) -> GraphStates:
        """Returns the states of what the graph shows with these groups open."""
        return (await self._rendered(workflow, opened, reveal, who)).states()

    async def jobs_of(
        self, workflow: int, group: str, states: Collection[int], page: Page, who: Identity
    ) -> tuple[list[int], int | None]:
        """Returns jobs of a group that are in one of these states, and where the next page starts.

        No states means any.
        """
        await self._check(workflow, who)
        loaded = await self._graphs.loaded(workflow)
        members = await self._graphs.members(loaded, group)
        if members is None:
            raise NotFound("group", group)
        found = [one for one in members if not states or loaded.states[one] in states]
        last = page.first + page.limit
        jobs = [loaded.graph.jobs[one] for one in found[page.first : last]]
        return jobs, last if last < len(found) else None

    async def progress(self, workflow: int, who: Identity) -> WorkflowProgress:
        """Returns how far a workflow is, its longest chain, and what waits for approval."""
        await self._check(workflow, who)
        loaded = await self._graphs.loaded(workflow)
        return show_progress(loaded, await self._graphs.figures(loaded))

    async def timeline(
        self, workflow: int, by: str, window: Window, who: Identity
    ) -> WorkflowTimeline:
        """Returns when the attempts of a workflow ran."""
        await self._check(workflow, who)
        if by not in ("worker", "name"):
            raise InvalidInput("by", "worker or name", by)
        loaded = await self._graphs.loaded(workflow)
        now = await self._store.read(_now)
        runs, left_out = await self._runs(loaded, by, now)
        found = await aside(loaded.weight, lambda: lay_out(runs, window))
        return show_timeline(workflow, now, found, left_out)

    async def compare(self, a: int, b: int, limit: int, who: Identity) -> WorkflowComparison:
        """Returns what two workflows differ in."""
        rows = [await self._check(workflow, who) for workflow in (a, b)]
        one, other = await self._graphs.loaded(a), await self._graphs.loaded(b)
        digests = [await self._graphs.digests(loaded) for loaded in (one, other)]

        def work() -> Comparison:
            return compare_sides(sides_of(one, digests[0]), sides_of(other, digests[1]))

        found = await aside(one.weight + other.weight, work)
        shown = found.differences[:limit]
        ids = [side.job for each in shown if each.arguments for side in (each.a, each.b) if side]
        specs = await self._store.read(lambda tx: tx.jobs.specs(ids)) if ids else {}
        arguments = [show_arguments(each, specs, (one, other)) for each in shown]
        return show_comparison(rows, (one, other), found, shown, arguments)

    async def _rendered(
        self, workflow: int, opened: Sequence[str], reveal: int, who: Identity
    ) -> Rendered:
        row = await self._check(workflow, who)
        if len(opened) > MAX_OPEN:
            raise InvalidInput("opened", f"at most {MAX_OPEN} groups", len(opened))
        loaded = await self._graphs.loaded(workflow)
        view = await self._graphs.view(loaded, opened, [reveal] if reveal else ())
        counts = await self._graphs.counts(loaded, view)
        figures = await self._graphs.known_figures(loaded)
        return Rendered(row, loaded, view, counts, () if figures is None else figures.chain.jobs)

    async def _check(self, workflow: int, who: Identity) -> WorkflowRow:
        rows = await self._store.read(lambda tx: tx.workflows.read([workflow]))
        row = rows.get(workflow)
        if row is None or not sees(who, row.namespace):
            raise NotFound("workflow", workflow)
        return row

    async def _runs(self, loaded: Loaded, by: str, now: int) -> tuple[list[Run], int]:
        """Returns all attempts that started, and of how many jobs earlier ones were left out."""
        graph = loaded.graph
        again = [job for job, n in zip(graph.jobs, loaded.attempts, strict=True) if n > 1]
        replaced = await self._graphs.moments(list(loaded.superseded[:MAX_EARLIER]))
        again += [one.job for one in replaced if one.attempt > 1]
        earlier: list[Attempt] = []
        for first in range(0, min(len(again), MAX_EARLIER), CHUNK):
            some = again[first : first + CHUNK]
            rows = await self._store.read(partial(_attempts, jobs=some))
            earlier += [row for found in rows.values() for row in found]
        left_out = max(0, len(loaded.superseded) - MAX_EARLIER)
        left_out += max(0, len(again) - MAX_EARLIER)
        workers = {*loaded.workers, *(one.worker for one in earlier)}
        workers |= {one.worker or 0 for one in replaced}
        names = await self._store.read(lambda tx: tx.views.worker_names(sorted(workers - {0})))

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


async def _now(tx: ReadTx) -> int:
    return tx.now
