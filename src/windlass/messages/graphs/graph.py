"""The graph of a workflow as it is drawn: boxes with positions, edges, and states."""

import msgspec


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """A job, or a group of jobs, with its position.

    `kind` is job, name, layers or part. `states` counts the jobs in it by state. `parent` is the
    open group around it. `layer` and `last_layer` say how many jobs precede it in the longest
    chain. `critical` means that the longest chain goes through it.
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


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies between two closed nodes: `target` waits for `source`."""

    source: str
    target: str
    jobs: int
    critical: bool = False


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
