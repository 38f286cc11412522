"""Splits the jobs of a workflow into a few groups that can be opened one by one.

Groups are made by name if that causes no cycle between groups, else by layer; similar jobs of one
layer are cut into parts. So no level shows more than `FEW` boxes, and the edges of each level lead
from left to right. Jobs that fill a column are grouped if that leaves half of the boxes. Names such
as `test[3.12,linux]` and `frame-12-encode` count as similar (`stem_of`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from windlass.domain.graphs.graph import WIDE, Graph
from windlass.domain.job.dependency_graph import put_in_order

_DIGITS: Final = re.compile(r"\d+")
_PIECES: Final = re.compile(r"[-_./: #]+")
_SEPARATORS: Final = "-_./: #"
NUMBER: Final = "#"


def stem_of(name: str) -> str:
    """Returns a job's name without its matrix values and with `#` for numbers.

    A trailing number is left out: `test[1]`, `test-1` and `test` are alike.
    """
    cut = name.find("[")
    if cut > 0 and name.endswith("]"):
        name = name[:cut]
    return _DIGITS.sub(NUMBER, name).rstrip(_SEPARATORS) or name


def first_piece(stem: str) -> str:
    """Returns what a name begins with: `build` of `build-linux`."""
    return _PIECES.split(stem, 1)[0] or stem


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Returns a key that sorts `a-2` before `a-10`."""
    pieces = re.findall(r"\d+|\D+", name)
    return tuple((int(one), "") if one.isdecimal() else (-1, one) for one in pieces)


ALL: Final = 24  # up to this number, jobs are shown one by one,
FEW: Final = 120  # and up to this one if few of them have similar names
PARTS: Final = 60  # maximum parts or bands of layers that a level is cut into
ROOT: Final = ""


class Part(NamedTuple):
    """A job, or a group of jobs: by `name`, by `layers`, or a `part` of similar ones.

    `id` is the same whenever the same jobs are split. `members` ascend.
    """

    id: str
    kind: str  # "job", "name", "layers" or "part"
    label: str
    members: Sequence[int]
    layer: int
    last_layer: int

    @property
    def is_group(self) -> bool:
        return self.kind != "job"


class Split(NamedTuple):
    """The parts of a level, and how many dependencies connect them: (needed, waiting), by place."""

    parts: Sequence[Part]
    edges: Mapping[tuple[int, int], int]


def split(graph: Graph, members: Sequence[int], parent: str = ROOT) -> Split:
    """Returns the parts of these jobs, at most `FEW`; a single job is not a group."""
    found = _by_name(graph, members, parent) if len(members) > ALL else None
    if found is not None and (len(members) > FEW or 2 * len(found.parts) <= len(members)):
        return found
    if len(members) <= FEW:
        parts = [_single(graph, number) for number in members]
        return Split(parts, _edges_between(graph, parts))
    parts = _by_layers(graph, members, parent) or _cut(graph, members, parent)
    return Split(parts, _edges_between(graph, parts))


def _single(graph: Graph, number: int) -> Part:
    layer = graph.layers[number]
    return Part(f"{graph.jobs[number]}", "job", graph.names[number], (number,), layer, layer)


def _group(graph: Graph, parent: str, kind: str, value: str, members: Sequence[int]) -> Part:
    if len(members) == 1:
        return _single(graph, members[0])
    key = f"{kind[0]}:{quote(value, safe='')}"
    layers = [graph.layers[number] for number in members]
    name = f"{parent}/{key}" if parent else key
    return Part(name, kind, value, members, min(layers), max(layers))


def _by_name(graph: Graph, members: Sequence[int], parent: str) -> Split | None:
    """Groups by name, or by the first piece of the name if there are too many.

    Returns None if that makes one group, too many, or a cycle of groups.
    """
    stems, layers = graph.stems, graph.layers
    found: dict[str, list[int]] = {}
    for number in members:
        found.setdefault(stems[number], []).append(number)
    if len(found) > (FEW if len(members) > FEW else ALL):
        found = _joined(found)
    if not 2 <= len(found) <= FEW:
        return None
    ordered = sorted(found.items(), key=lambda item: (layers[item[1][0]], item[1][0]))
    parts = [_group(graph, parent, "name", name, numbers) for name, numbers in ordered]
    edges = _edges_between(graph, parts)
    return Split(parts, edges) if _is_acyclic(len(parts), edges) else None


def _joined(found: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Joins names that begin with the same word."""
    joined: dict[str, list[int]] = {}
    for stem, numbers in found.items():
        joined.setdefault(first_piece(stem), []).extend(numbers)
    return {piece: sorted(numbers) for piece, numbers in joined.items()}


def _by_layers(graph: Graph, members: Sequence[int], parent: str) -> list[Part]:
    """Groups by layer, or by bands of similar size; returns none if all are in one layer."""
    found: dict[int, list[int]] = {}
    for number in members:
        found.setdefault(graph.layers[number], []).append(number)
    if len(found) == 1:
        return []
    bands = _bands([(layer, len(found[layer])) for layer in sorted(found)])
    return [
        _group(
            graph, parent, "layers", str(band[0]) if len(band) == 1 else f"{band[0]}-{band[-1]}",
            sorted(number for layer in band for number in found[layer]),
        )
        for band in bands
    ]  # fmt: skip


def _bands(sizes: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Returns at most `PARTS` runs of layers, each with about the same number of jobs."""
    if len(sizes) <= PARTS:
        return [[layer] for layer, _ in sizes]
    share = sum(size for _, size in sizes) / PARTS
    bands: list[list[int]] = [[]]
    held = 0
    for layer, size in sizes:
        if bands[-1] and held + size / 2 > share * len(bands) and len(bands) < PARTS:
            bands.append([])
        bands[-1].append(layer)
        held += size
    return bands


def _cut(graph: Graph, members: Sequence[int], parent: str) -> list[Part]:
    """Cuts jobs of one layer into parts, in the order of their names."""
    ordered = sorted(members, key=lambda number: natural_key(graph.names[number]))
    size = max(FEW, -(-len(ordered) // PARTS))
    parts: list[Part] = []
    for first in range(0, len(ordered), size):
        some = ordered[first : first + size]
        made = _group(graph, parent, "part", f"{first + 1}-{first + len(some)}", sorted(some))
        label = f"{graph.names[some[0]]} … {graph.names[some[-1]]}"
        parts.append(made._replace(label=label) if made.is_group else made)
    return parts


def _edges_between(graph: Graph, parts: Sequence[Part]) -> dict[tuple[int, int], int]:
    part_of = [-1] * len(graph)
    members: list[int] = []
    for place, part in enumerate(parts):
        members += part.members
        for number in part.members:
            part_of[number] = place
    found = graph.count_between(part_of, members)
    return {(key % WIDE, key // WIDE): count for key, count in found.items()}


def _is_acyclic(count: int, edges: Iterable[tuple[int, int]]) -> bool:
    needs: list[list[int]] = [[] for _ in range(count)]
    for needed, waiting in edges:
        needs[waiting].append(needed)
    _, circle = put_in_order(needs)
    return not circle
