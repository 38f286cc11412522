"""Renders graphs and figures as clients see them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from windlass.domain.graphs.compare import (
    ComparedArgument,
    ComparedJob,
    ComparedSide,
    Comparison,
    Side,
)
from windlass.domain.graphs.view import Box, View, add_up, jobs_in
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import BLOCKED, STATE_BY_CODE, TERMINAL_CODES
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.tasks.references import RESULT, replaced
from windlass.domain.values.quantities import format_moment
from windlass.engine.graphs import Figures, Loaded
from windlass.messages.graphs import (
    Approval,
    ChainJob,
    Compared,
    CriticalPath,
    GraphEdge,
    GraphNode,
    GraphStates,
    WorkflowComparison,
    WorkflowGraph,
    WorkflowProgress,
)

CHAIN: Final = 200  # jobs of the longest chain that are listed
APPROVALS: Final = 200


def by_name(counts: Mapping[int, int]) -> dict[str, int]:
    """Returns counts by the names of the states."""
    return {str(STATE_BY_CODE[code]): count for code, count in counts.items() if code}


class Rendered:
    """A graph with the states of its boxes."""

    def __init__(
        self,
        row: WorkflowRow,
        loaded: Loaded,
        view: View,
        counts: Sequence[Mapping[int, int]],
        chain: Sequence[int],
        now: int,
    ) -> None:
        self._row = row
        self._loaded = loaded
        self._view = view
        self._counts = add_up(view.boxes, counts)
        self._critical = jobs_in(chain, view.shown_in)
        self._ms = _lengths(loaded, view.boxes, now)
        shown_in = view.shown_in
        self._critical_edges = {(shown_in[one], shown_in[two]) for one, two in pairwise(chain)}

    def graph(self) -> WorkflowGraph:
        """Returns the graph with positions and edges."""
        view, graph = self._view, self._loaded.graph
        return WorkflowGraph(
            workflow=self._row.id,
            version=self._version,
            jobs=len(graph),
            dependencies=graph.edges,
            states=self._total(),
            width=view.width,
            height=view.height,
            nodes=[self._node(place, box) for place, box in enumerate(view.boxes)],
            edges=[
                GraphEdge(
                    source=view.boxes[edge.needed].part.id,
                    target=view.boxes[edge.waiting].part.id,
                    jobs=edge.jobs,
                    critical=(edge.needed, edge.waiting) in self._critical_edges,
                    path=[list(point) for point in edge.path],
                )
                for edge in view.edges
            ],
            left_closed=list(view.left_closed),
            edges_left_out=view.edges_left_out,
        )

    def states(self) -> GraphStates:
        """Returns the states alone."""
        boxes = self._view.boxes
        return GraphStates(
            workflow=self._row.id,
            version=self._version,
            states=self._total(),
            nodes={
                box.part.id: by_name(count) for box, count in zip(boxes, self._counts, strict=True)
            },
            critical=[boxes[place].part.id for place in sorted(self._critical)],
            ms={box.part.id: ms for box, ms in zip(boxes, self._ms, strict=True) if ms is not None},
        )

    @property
    def _version(self) -> str:
        return f"{self._row.run}.{self._loaded.version}"

    def _total(self) -> dict[str, int]:
        outer = [c for b, c in zip(self._view.boxes, self._counts, strict=True) if not b.parent]
        total: dict[int, int] = {}
        for count in outer:
            for state, jobs in count.items():
                total[state] = total.get(state, 0) + jobs
        return by_name(dict(sorted(total.items())))

    def _node(self, place: int, box: Box) -> GraphNode:
        graph, members = self._loaded.graph, box.part.members
        return GraphNode(
            id=box.part.id,
            kind=box.part.kind,
            label=box.part.label,
            job=None if box.part.is_group else graph.jobs[members[0]],
            parent=box.parent or None,
            open=box.is_open,
            jobs=len(members),
            states=by_name(self._counts[place]),
            x=box.x,
            y=box.y,
            width=box.width,
            height=box.height,
            layer=box.part.layer,
            last_layer=box.part.last_layer,
            critical=place in self._critical,
            ms=self._ms[place],
        )


def _lengths(loaded: Loaded, boxes: Sequence[Box], now: int) -> list[int | None]:
    """Returns for each box the time from its first start to its last end, or until now."""
    found: list[int | None] = []
    for box in boxes:
        members = box.part.members
        starts = [start for number in members if (start := loaded.started[number])]
        over = all(loaded.finished[number] for number in members)
        ends = [loaded.finished[number] for number in members if loaded.started[number]]
        end = max(ends, default=now) if over else now
        found.append(end - min(starts) if starts else None)
    return found


def show_progress(loaded: Loaded, figures: Figures) -> WorkflowProgress:
    """Renders how far a workflow is."""
    found = figures.progress
    waiting = sorted(n for n in loaded.manual if loaded.states[n] == BLOCKED)
    names = loaded.graph.names
    ends = None if found.left is None else format_moment(figures.at + found.left.likely)
    return WorkflowProgress(
        workflow=loaded.workflow,
        jobs=found.total,
        done=found.done,
        running=found.running,
        work_ms=found.work_ms,
        done_ms=found.done_ms,
        unknown=found.unknown,
        at_once=found.at_once,
        left=found.left,
        ends_at=ends,
        critical_path=_show_chain(loaded, figures),
        approvals=[
            Approval(
                job=loaded.graph.jobs[number],
                name=names[number],
                since=format_moment(loaded.created[number]),
                others=max(0, loaded.unmet[number] - 1),
            )
            for number in waiting[:APPROVALS]
        ],
        approvals_left_out=max(0, len(waiting) - APPROVALS),
    )


def _show_chain(loaded: Loaded, figures: Figures) -> CriticalPath:
    """Renders the longest chain; of a very long one its beginning and its end."""
    chain = figures.chain.jobs
    left_out = max(0, len(chain) - CHAIN)
    shown = chain if not left_out else [*chain[: CHAIN // 2], *chain[-CHAIN // 2 :]]
    return CriticalPath(
        jobs=[
            ChainJob(
                job=loaded.graph.jobs[number],
                name=loaded.graph.names[number],
                state=str(STATE_BY_CODE[loaded.states[number]]),
                ms=figures.expected[number].whole,
                known=figures.expected[number].known,
            )
            for number in shown
        ],
        length=len(chain),
        left_out=left_out,
        total_ms=figures.chain.total_ms,
        left=figures.chain.left,
    )


def show_comparison(
    rows: Sequence[WorkflowRow],
    runs: Sequence[Loaded],
    found: Comparison,
    jobs: Sequence[ComparedJob],
) -> WorkflowComparison:
    """Renders what two runs differ in."""
    a, b = (_compared(row, loaded) for row, loaded in zip(rows, runs, strict=True))
    return WorkflowComparison(
        a=a,
        b=b,
        same=found.same,
        different=len(found.differences),
        only_a=found.only_a,
        only_b=found.only_b,
        jobs=list(jobs),
        left_out=len(found.differences) - len(jobs),
    )


def _compared(row: WorkflowRow, loaded: Loaded) -> Compared:
    return Compared(
        workflow=row.id,
        name=row.name,
        run=row.run,
        state=WorkflowState(row.state).name.lower(),
        jobs=len(loaded.graph),
        total_ms=None if row.finished_at is None else row.finished_at - row.created_at,
    )


MAX_ARGUMENTS: Final = 20
MAX_CHARACTERS: Final = 500  # characters of a value


def sides_of(loaded: Loaded, digests: Sequence[int]) -> Iterable[Side]:
    """Yields the jobs of a run with how long each ran, and waited once it could have run."""
    graph, started, finished = loaded.graph, loaded.started, loaded.finished
    for number, job in enumerate(graph.jobs):
        start, state = started[number], loaded.states[number]
        run = finished[number] - start if start and state in TERMINAL_CODES else None
        needed = graph.needs_of(number)
        ready = max((finished[other] for other in needed), default=0)
        wait = start - max(ready, loaded.created[number]) if start else None
        yield Side(
            graph.names[number], digests[number],
            ComparedSide(
                job=job, state=str(STATE_BY_CODE[state]),
                run_ms=None if run is None else max(0, run),
                wait_ms=None if wait is None else max(0, wait),
            ),
        )  # fmt: skip


def with_arguments(
    found: ComparedJob, specs: Mapping[int, bytes], runs: Sequence[Loaded]
) -> ComparedJob:
    """Adds the arguments that differ, with the names of jobs instead of their ids."""
    if not found.arguments_differ or found.a is None or found.b is None:
        return found
    sides = ((found.a.job, runs[0]), (found.b.job, runs[1]))
    if any(job not in specs for job, _ in sides):
        return found
    a, b = (_arguments(specs[job], loaded) for job, loaded in sides)
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    arguments = [
        ComparedArgument(name=name, a=_cut(a.get(name)), b=_cut(b.get(name)))
        for name in names[:MAX_ARGUMENTS]
    ]
    return msgspec.structs.replace(found, arguments=arguments)


def _arguments(spec: bytes, loaded: Loaded) -> dict[str, Any]:
    """Returns the arguments by name; those of functions are inside others."""

    def named(job: Any) -> Any:
        number = loaded.graph.index.get(job) if isinstance(job, int) else None
        return {RESULT: job if number is None else loaded.graph.names[number]}

    given = replaced(decode_spec(spec).args, RESULT, named)
    if not isinstance(given, dict):
        return {"args": given}
    flat: dict[str, Any] = {}
    for name, value in given.items():
        inner = value if name in ("args", "kwargs") else None
        if isinstance(inner, dict):
            flat |= {f"{name}.{key}": one for key, one in inner.items()}
        elif isinstance(inner, list):
            flat |= {f"{name}[{at}]": one for at, one in enumerate(inner)}
        else:
            flat[name] = value
    return flat


def _cut(value: Any) -> Any:
    text = msgspec.json.encode(value).decode()
    return value if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
