"""The graph of a workflow, its progress, when its attempts ran, and how two runs differ."""

import msgspec

from windlass.domain.explain.forecast import Span
from windlass.domain.graphs.compare import ComparedJob
from windlass.domain.graphs.timeline import Timeline


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """A job, or a group of jobs, with its position.

    `kind` is job, name, layers or part. `states` counts the jobs in it by state. `parent` is the
    open group around it. `layer` and `last_layer` say how many jobs precede it in the longest
    chain. `critical` means that the longest chain goes through it. `ms` is how long it has run:
    from the first start to the last end, or until now; null before it starts.
    """

    id: str
    kind: str
    label: str
    job: int | None = None
    parent: str | None = None
    open: bool = False
    jobs: int
    states: dict[str, int]
    x: float
    y: float
    width: float
    height: float
    layer: int
    last_layer: int
    critical: bool = False
    ms: int | None = None


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies between two closed nodes: `target` waits for `source`.

    `path` lists the points (x, y) of a line around all other nodes, from left to right.
    """

    source: str
    target: str
    jobs: int
    critical: bool = False
    path: list[list[float]]


class WorkflowGraph(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a workflow's graph. Each group comes before its contents.

    `version` changes when jobs are added or retried: then request the graph again. `left_closed`
    are requested groups that did not fit. If there are too many edges, those with the most
    dependencies are shown; `edges_left_out` counts the others.
    """

    workflow: int
    version: str
    jobs: int
    dependencies: int
    states: dict[str, int]
    width: float
    height: float
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    left_closed: list[str]
    edges_left_out: int


class GraphStates(msgspec.Struct, frozen=True, kw_only=True):
    """The states of the shown nodes, without positions."""

    workflow: int
    version: str
    states: dict[str, int]
    nodes: dict[str, dict[str, int]]
    critical: list[str]
    ms: dict[str, int]


class ChainJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the longest chain: how long it took or is expected to take, in milliseconds."""

    job: int
    name: str
    state: str
    ms: int
    known: bool  # False: no such job has run before, so it counts as 0


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """The chain of dependent jobs that takes longest; `left_out` counts omitted jobs in its
    middle.
    """

    jobs: list[ChainJob]
    length: int
    left_out: int
    total_ms: int
    left: Span


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits for somebody to unblock it, and perhaps for `others` jobs as well."""

    job: int
    name: str
    since: str
    others: int


class WorkflowProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a workflow; times are milliseconds from now.

    `left` says when it may end if `at_once` jobs run at a time; null if it has ended or is unknown.
    `unknown` jobs have no known run time and count as 0.
    """

    workflow: int
    jobs: int
    done: int
    running: int
    work_ms: int
    done_ms: int
    unknown: int
    at_once: int
    left: Span | None
    ends_at: str | None
    critical_path: CriticalPath
    approvals: list[Approval]
    approvals_left_out: int


class WorkflowTimeline(Timeline, frozen=True, kw_only=True):
    """The timeline of one workflow; `runs_left_out` counts jobs whose earlier attempts it lacks."""

    workflow: int
    now: int
    runs_left_out: int


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One of two workflows that are compared."""

    workflow: int
    name: str
    run: int
    state: str
    jobs: int
    total_ms: int | None


class WorkflowComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two workflows, the largest first, up to a limit."""

    a: Compared
    b: Compared
    same: int
    different: int
    only_a: int
    only_b: int
    jobs: list[ComparedJob]
    left_out: int
