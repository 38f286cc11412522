"""Workflows as pictures: DOT for Graphviz, Mermaid for pages of text.

Jobs of a large matrix are drawn as one box, and so are the edges between boxes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import Job

MAX_ALIKE: Final = 10  # jobs of one entry that are drawn one by one

# The colour of each state. A box of many jobs has that of the first of these that one is in.
_COLOURS: Final = {
    "failed": "#f2b8b5", "rejected": "#f2b8b5", "timed_out": "#f2b8b5", "aborted": "#e8cfce",
    "running": "#b5dcf0", "assigned": "#b5dcf0", "canceling": "#d7dde2", "retrying": "#f6e6a8",
    "queued": "#f6e6a8", "suspended": "#e4d3ee", "blocked": "#e4d3ee", "canceled": "#d7dde2",
    "skipped": "#eceff1", "completed": "#b7e1b0",
}  # fmt: skip


class Box(msgspec.Struct, frozen=True):
    """One job, or `jobs` similar ones; `states` counts them by state, if known."""

    name: str
    jobs: int = 1
    states: dict[str, int] = {}


class Edge(msgspec.Struct, frozen=True):
    """`to` waits for `source`; with `any_end`, for any end of it."""

    source: str = msgspec.field(name="from")
    to: str = ""
    any_end: bool = False


class Graph(msgspec.Struct, frozen=True):
    """The boxes and edges to draw."""

    name: str
    boxes: list[Box]
    edges: list[Edge]


def entry_of(name: str) -> str:
    """Returns the entry that a job of a matrix belongs to: `test` of `test[3.12,linux]`."""
    return name[: name.rindex("[")] if name.endswith("]") and "[" in name else name


def graph_of_requests(name: str, jobs: Sequence[JobSpec]) -> Graph:
    """Returns the graph of a workflow before it is submitted."""
    names = [job.name or "" for job in jobs]
    ties = [(list(map(str, job.after)), list(map(str, job.after_any))) for job in jobs]
    return _graph(name, names, ties, [None] * len(jobs))


def graph_of_jobs(name: str, jobs: Sequence[Job]) -> Graph:
    """Returns the graph of a submitted workflow, without superseded jobs."""
    left = sorted((job for job in jobs if job.superseded_by is None), key=lambda job: job.id)
    names = {job.id: job.name or f"job {job.id}" for job in left}

    def named(ids: Iterable[int]) -> list[str]:
        return [names.get(job, f"job {job}") for job in ids]

    ties = [(named(job.after), named(job.after_any)) for job in left]
    return _graph(name, list(names.values()), ties, [job.state for job in left])


def _graph(
    title: str,
    names: Sequence[str],
    ties: Sequence[tuple[Sequence[str], Sequence[str]]],
    states: Sequence[str | None],
) -> Graph:
    alike: dict[str, int] = {}
    for name in names:
        alike[entry_of(name)] = alike.get(entry_of(name), 0) + 1

    def drawn(name: str) -> str:
        entry = entry_of(name)
        return entry if alike.get(entry, 0) > MAX_ALIKE else name

    counts: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    edges: dict[Edge, None] = {}
    for name, (after, any_after), state in zip(names, ties, states, strict=True):
        box = drawn(name)
        sizes[box] = sizes.get(box, 0) + 1
        seen = counts.setdefault(box, {})
        if state is not None:
            seen[state] = seen.get(state, 0) + 1
        for others, any_end in ((after, False), (any_after, True)):
            edges |= dict.fromkeys(Edge(drawn(other), box, any_end) for other in others)
    boxes = [Box(name, size, counts[name]) for name, size in sizes.items()]
    outside = {edge.source for edge in edges} - sizes.keys()
    return Graph(title, [*boxes, *map(Box, sorted(outside))], list(edges))


def as_dot(graph: Graph) -> str:
    """Returns the graph for Graphviz (`dot -Tsvg`)."""
    ids = _ids(graph)
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for box in graph.boxes:
        colour = _colour_of(box)
        fill = f', style=filled, fillcolor="{colour}"' if colour else ""
        lines.append(f"  {ids[box.name]} [label={_quoted(_label(box, chr(10)))}{fill}];")
    for edge in graph.edges:
        dashed = " [style=dashed]" if edge.any_end else ""
        lines.append(f"  {ids[edge.source]} -> {ids[edge.to]}{dashed};")
    return "\n".join([*lines, "}"])


def as_mermaid(graph: Graph) -> str:
    """Returns the graph as Mermaid."""
    ids = _ids(graph)
    lines = ["flowchart LR"]
    styles: list[str] = []
    for box in graph.boxes:
        lines.append(f'  {ids[box.name]}["{_entity(_label(box, "<br/>"))}"]')
        colour = _colour_of(box)
        if colour:
            styles.append(f"  style {ids[box.name]} fill:{colour}")
    lines += [
        f"  {ids[edge.source]} {'-.->' if edge.any_end else '-->'} {ids[edge.to]}"
        for edge in graph.edges
    ]
    return "\n".join([*lines, *styles])


FORMATS: Final[Mapping[str, Callable[[Graph], str]]] = {"dot": as_dot, "mermaid": as_mermaid}


def _ids(graph: Graph) -> dict[str, str]:
    return {box.name: f"n{number}" for number, box in enumerate(graph.boxes)}


def _label(box: Box, line: str) -> str:
    name = box.name if box.jobs == 1 else f"{box.name} × {box.jobs}"
    states = ", ".join(
        state if box.jobs == 1 else f"{count} {state}" for state, count in box.states.items()
    )
    return f"{name}{line}{states}" if states else name


def _colour_of(box: Box) -> str | None:
    return next((colour for state, colour in _COLOURS.items() if state in box.states), None)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _entity(text: str) -> str:
    """Escapes characters that Mermaid would interpret, by their numbers; keeps line breaks."""
    parts = text.split("<br/>")
    return "<br/>".join(
        "".join(f"#{ord(sign)};" if sign in '"#<>&`' else sign for sign in part) for part in parts
    )
