"""What is shown of a graph with some of its groups open: a bounded number of boxes and edges.

The boxes of a level stand in layers from left to right, with few crossings. Their order and
positions depend on the structure only. When a box is opened, only boxes below it in its column and
the columns after it move, by as much as it grows.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from windlass.domain.graphs.graph import SLICE, WIDE, Graph
from windlass.domain.graphs.groups import ROOT, Part, Split, split

SWEEPS: Final = 6  # over all layers, forwards and backwards
# minimum and maximum of boxes in a column; longer layers get several columns
ROWS: Final = (10, 24)
GAP_X: Final = 90.0  # between layers
GAP_BESIDE: Final = 24.0  # between the columns of one layer
GAP_Y: Final = 20.0

Size = tuple[float, float]


class Slot(NamedTuple):
    """The position of a closed box: its layer, its column, and its corner."""

    layer: int
    column: int
    x: float
    y: float


def arrange(count: int, edges: Iterable[tuple[int, int]], sizes: Sequence[Size]) -> Sequence[Slot]:
    """Places closed boxes of these sizes; edges are (needed, waiting) and have no cycle."""
    before: list[list[int]] = [[] for _ in range(count)]
    behind: list[list[int]] = [[] for _ in range(count)]
    for needed, waiting in sorted(edges):
        before[waiting].append(needed)
        behind[needed].append(waiting)
    layers = _order_layers(_longest_paths(before, behind), before, behind)
    slots: list[Slot] = [Slot(0, 0, 0.0, 0.0)] * count
    centres = [0.0] * count
    x, column = 0.0, 0
    for number, layer in enumerate(layers):
        columns = _columns(layer)
        for boxes in columns:
            for box, y in _stack(boxes, sizes, before, centres, align=len(columns) == 1):
                slots[box] = Slot(number, column, x, y)
                centres[box] = y + sizes[box][1] / 2
            x += max(sizes[box][0] for box in boxes) + GAP_BESIDE
            column += 1
        x += GAP_X - GAP_BESIDE
    top = min((slot.y for slot in slots), default=0.0)
    return [slot._replace(y=round(slot.y - top, 1)) for slot in slots]


def _columns(layer: Sequence[int]) -> list[Sequence[int]]:
    """Splits a layer into columns of equal length, so that it is not much taller than wide.

    A box is about four times as wide as it is high, and windows are wider than high.
    """
    least, most = ROWS
    rows = min(max(least, round(2 * math.sqrt(len(layer)))), most)
    rows = math.ceil(len(layer) / math.ceil(len(layer) / rows))
    return [layer[first : first + rows] for first in range(0, len(layer), rows)]


def spread(slots: Sequence[Slot], closed: Sequence[Size], sizes: Sequence[Size]) -> Sequence[Slot]:
    """Moves boxes apart to make room for opened ones."""
    columns: dict[int, list[int]] = {}
    for box in sorted(range(len(slots)), key=lambda box: (slots[box].column, slots[box].y)):
        columns.setdefault(slots[box].column, []).append(box)
    moved = list(slots)
    right = 0.0
    for boxes in columns.values():
        width = max(closed[box][0] for box in boxes)
        down = 0.0
        for box in boxes:
            moved[box] = slots[box]._replace(x=slots[box].x + right, y=slots[box].y + down)
            down += sizes[box][1] - closed[box][1]
        right += max(0.0, max(sizes[box][0] for box in boxes) - width)
    return moved


def _longest_paths(
    before: Sequence[Sequence[int]], behind: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Returns the boxes of each layer, in the order in which they were given."""
    missing = [len(needed) for needed in before]
    depth = [0] * len(before)
    ready = [box for box, left in enumerate(missing) if not left]
    for box in ready:
        for other in behind[box]:
            depth[other] = max(depth[other], depth[box] + 1)
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for box, layer in enumerate(depth):
        layers[layer].append(box)
    return layers


def _order_layers(
    layers: list[list[int]], before: Sequence[Sequence[int]], behind: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Orders the boxes of each layer to have few crossings, by barycentres."""
    place: dict[int, float] = {}
    for layer in layers:
        _put_down(layer, place)
    best, fewest = [list(layer) for layer in layers], _crossings(layers, behind, place)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        neighbours = before if forth else behind
        for layer in layers if forth else reversed(layers):
            layer.sort(key=lambda box: (_mean(neighbours[box], place, place[box]), place[box]))
            _put_down(layer, place)
        crossings = _crossings(layers, behind, place)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _put_down(layer: Sequence[int], place: dict[int, float]) -> None:
    """Records the positions of a layer's boxes, scaled from 0 to 1."""
    for at, box in enumerate(layer):
        place[box] = at / max(1, len(layer) - 1)


def _mean(boxes: Sequence[int], place: dict[int, float], otherwise: float) -> float:
    return sum(place[box] for box in boxes) / len(boxes) if boxes else otherwise


def _crossings(
    layers: Sequence[Sequence[int]], behind: Sequence[Sequence[int]], place: dict[int, float]
) -> int:
    """Counts the crossings between layers; edges that skip layers count as straight lines."""
    crossings = 0
    for layer in layers:
        ends: list[float] = []
        for box in layer:
            targets = sorted(place[other] for other in behind[box])
            crossings += sum(len(ends) - bisect_right(ends, target) for target in targets)
            for target in targets:
                insort(ends, target)
    return crossings


def _stack(
    boxes: Sequence[int],
    sizes: Sequence[Size],
    before: Sequence[Sequence[int]],
    centres: Sequence[float],
    align: bool,
) -> list[tuple[int, float]]:
    """Returns the top of each box of a column: level with its dependencies where there is room."""
    heights = [sizes[box][1] for box in boxes]
    wanted: list[float] = []
    y = -(sum(heights) + GAP_Y * (len(boxes) - 1)) / 2
    for box, height in zip(boxes, heights, strict=True):
        near = [centres[other] for other in before[box]] if align else []
        wanted.append(sum(near) / len(near) - height / 2 if near else y)
        y += height + GAP_Y
    tops: list[float] = []
    free = -float("inf")
    for top, height in zip(wanted, heights, strict=True):
        tops.append(max(free, top))
        free = tops[-1] + height + GAP_Y
    shift = sum(want - top for want, top in zip(wanted, tops, strict=True)) / len(tops)
    return [(box, round(top + shift, 1)) for box, top in zip(boxes, tops, strict=True)]


MAX_BOXES: Final = 500
MAX_EDGES: Final = 1_000
LEVELS: Final = 300  # open groups whose parts are kept
JOB: Final[Size] = (190.0, 44.0)  # at least; the names of jobs often differ only at their end
GROUP: Final[Size] = (210.0, 68.0)
WIDEST: Final = 360.0
CHARACTER: Final = 7.2  # width of a character in the page's font
BESIDE_LABEL: Final = {
    False: 56.0,
    True: 130.0,
}  # of a job: its icon; of a group: its number of jobs
HEADER: Final = 40.0  # of an open group, above its contents
PADDING: Final = 20.0


class Box(NamedTuple):
    """A job or a group as it is drawn; `parent` is the open group around it.

    `members` are the jobs in it, by index.
    """

    part: Part
    parent: str
    is_open: bool
    x: float
    y: float
    width: float
    height: float


class Edge(NamedTuple):
    """Dependencies between two closed boxes, by their place among all boxes."""

    needed: int
    waiting: int
    jobs: int  # number of dependencies


class View(NamedTuple):
    """The boxes, with each group before what it contains, and the edges between them.

    `shown_in` is the box that shows each job. `left_closed` are groups that did not fit,
    `edges_left_out` counts edges over the limit.
    """

    boxes: Sequence[Box]
    edges: Sequence[Edge]
    shown_in: Sequence[int]
    left_closed: Sequence[str]
    edges_left_out: int
    width: float
    height: float


class _Level(NamedTuple):
    parts: Sequence[Part]
    slots: Sequence[Slot]
    closed: Sequence[Size]
    edges: Mapping[tuple[int, int], int]


class _Drawn(NamedTuple):
    """The boxes of a level and of its open groups, relative to the level's corner."""

    boxes: list[Box]
    width: float
    height: float


class Levels:
    """The levels of one graph that were viewed; each is split and laid out once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._levels: dict[str, _Level] = {}
        self._groups: dict[str, Part] = {}

    def view(self, opened: Sequence[str] = (), reveal: Sequence[int] = ()) -> View:
        """Returns what is shown with these groups open, and those around the jobs of `reveal`.

        If too many groups are open, the last ones win. Unknown ones are ignored.
        """
        wanted = [*opened, *chain.from_iterable(map(self._around, reveal))]
        chosen, left = self._choose(wanted)
        drawn = self._draw(ROOT, chosen, 0.0, 0.0)
        shown_in = _shown_in(len(self.graph), drawn.boxes)
        edges = _edges(self.graph, shown_in) if chosen else _sorted(self._level(ROOT).edges)
        return View(
            drawn.boxes, edges[:MAX_EDGES], shown_in, left, max(0, len(edges) - MAX_EDGES),
            drawn.width, drawn.height,
        )  # fmt: skip

    def members(self, group: str) -> Sequence[int] | None:
        """Returns the jobs of a group (`ROOT`: all), by index; None for an unknown group."""
        if group == ROOT:
            return range(len(self.graph))
        return None if self._path(group) is None else self._groups[group].members

    def _choose(self, wanted: Sequence[str]) -> tuple[set[str], list[str]]:
        chosen: set[str] = set()
        left: list[str] = []
        shown = len(self._level(ROOT).parts)
        for group in dict.fromkeys(reversed(wanted)):
            path = self._path(group)
            fresh = [one for one in path or () if one not in chosen]
            more = sum(len(self._level(one).parts) for one in fresh)
            if path is not None and shown + more <= MAX_BOXES:
                chosen.update(fresh)
                shown += more
            elif path is not None:
                left.append(group)
        return chosen, left

    def _path(self, group: str) -> list[str] | None:
        """Returns a group after those around it; None for an unknown group."""
        path: list[str] = []
        level = ROOT
        for key in group.split("/"):
            self._level(level)
            level = f"{level}/{key}" if level else key
            if level not in self._groups:
                return None
            path.append(level)
        return path

    def _around(self, job: int) -> list[str]:
        """Returns the groups around a job, the outermost first."""
        number = self.graph.index.get(job)
        found: list[str] = []
        level = ROOT
        while number is not None:
            parts = (part for part in self._level(level).parts if part.is_group)
            holder = next((part for part in parts if _holds(part.members, number)), None)
            if holder is None:
                break
            level = holder.id
            found.append(level)
        return found[-1:]

    def _level(self, group: str) -> _Level:
        known = self._levels.get(group)
        if known is not None:
            return known
        graph = self.graph
        members = range(len(graph)) if group == ROOT else self._groups[group].members
        made: Split = split(graph, members, group)
        closed = _closed_sizes(made.parts)
        slots = arrange(len(made.parts), made.edges, closed)
        level = _Level(made.parts, slots, closed, made.edges)
        if len(self._levels) >= LEVELS:
            self._forget()
        self._levels[group] = level
        self._groups.update((part.id, part) for part in made.parts if part.is_group)
        return level

    def _forget(self) -> None:
        """Forgets all levels but the first; they are made again when needed."""
        self._levels = {ROOT: self._levels[ROOT]}
        self._groups = {part.id: part for part in self._levels[ROOT].parts if part.is_group}

    def _draw(self, group: str, opened: Collection[str], x: float, y: float) -> _Drawn:
        level = self._level(group)
        inside = {p.id: self._draw(p.id, opened, 0.0, 0.0) for p in level.parts if p.id in opened}
        sizes = [
            closed if (drawn := inside.get(part.id)) is None else _around_box(drawn, closed)
            for part, closed in zip(level.parts, level.closed, strict=True)
        ]
        boxes: list[Box] = []
        right = bottom = 0.0
        slots = spread(level.slots, level.closed, sizes)
        for part, slot, (width, height) in zip(level.parts, slots, sizes, strict=True):
            left, top = x + slot.x, y + slot.y
            drawn = inside.get(part.id)
            boxes.append(Box(part, group, drawn is not None, left, top, width, height))
            if drawn is not None:
                dx, dy = left + PADDING, top + HEADER
                boxes += [box._replace(x=box.x + dx, y=box.y + dy) for box in drawn.boxes]
            right, bottom = max(right, slot.x + width), max(bottom, slot.y + height)
        return _Drawn(boxes, right, bottom)


def _closed_sizes(parts: Sequence[Part]) -> list[Size]:
    """Returns the sizes of closed boxes: all jobs of a level as wide as the longest name needs."""
    widest = {True: GROUP[0], False: JOB[0]}
    for part in parts:
        asked = len(part.label) * CHARACTER + BESIDE_LABEL[part.is_group]
        widest[part.is_group] = max(widest[part.is_group], min(asked, WIDEST))
    return [(widest[part.is_group], (GROUP if part.is_group else JOB)[1]) for part in parts]


def _holds(members: Sequence[int], number: int) -> bool:
    at = bisect_left(members, number)
    return at < len(members) and members[at] == number


def _around_box(drawn: _Drawn, closed: Size) -> Size:
    width, height = drawn.width + 2 * PADDING, drawn.height + HEADER + PADDING
    return max(closed[0], width), max(closed[1], height)


def _shown_in(jobs: int, boxes: Sequence[Box]) -> list[int]:
    shown_in = [-1] * jobs
    for place, box in enumerate(boxes):
        if not box.is_open:
            for number in box.part.members:
                shown_in[number] = place
    return shown_in


def _edges(graph: Graph, shown_in: Sequence[int]) -> list[Edge]:
    """Returns the edges between boxes, those with the most dependencies first."""
    counts = graph.count_between(shown_in, range(len(graph)))
    return _sorted({(key % WIDE, key // WIDE): jobs for key, jobs in counts.items()})


def _sorted(counts: Mapping[tuple[int, int], int]) -> list[Edge]:
    found = [Edge(*pair, jobs) for pair, jobs in counts.items()]
    return sorted(found, key=lambda edge: (-edge.jobs, edge.needed, edge.waiting))


def count_states(
    shown_in: Sequence[int], states: Sequence[int], boxes: int
) -> Sequence[Mapping[int, int]]:
    """Returns how many jobs of each box are in each state."""
    counts: Counter[tuple[int, int]] = Counter()
    for first in range(0, len(shown_in), SLICE):
        some = slice(first, first + SLICE)
        counts.update(zip(shown_in[some], states[some], strict=True))
    found: list[dict[int, int]] = [{} for _ in range(boxes)]
    for (box, state), count in sorted(counts.items()):
        found[box][state] = count
    return found


def add_up(boxes: Sequence[Box], counts: Sequence[Mapping[int, int]]) -> list[Mapping[int, int]]:
    """Adds the counts of its contents to each open group."""
    totals: list[Counter[int]] = [Counter(one) for one in counts]
    place = {box.part.id: at for at, box in enumerate(boxes) if box.is_open}
    for at in range(len(boxes) - 1, -1, -1):
        parent: int | None = place.get(boxes[at].parent)
        if parent is not None:
            totals[parent].update(totals[at])
    return [dict(sorted(total.items())) for total in totals]


def jobs_in(numbers: Iterable[int], shown_in: Sequence[int]) -> set[int]:
    """Returns the boxes that show these jobs."""
    return {shown_in[number] for number in numbers}
