"""What is shown of a graph with some of its groups open: a bounded number of boxes and edges.

The boxes of a level stand in layers from left to right, with few crossings. Their order and
positions depend on the structure only. When a box is opened, only boxes below it in its column and
the columns after it move, by as much as it grows.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from typing import Final, NamedTuple

from windlass.domain.graphs.graph import SLICE, WIDE, Graph
from windlass.domain.graphs.groups import ROOT, Part, Split, split

SWEEPS: Final = 12  # over all layers, forwards and backwards
GAP_X: Final = 90.0  # between layers
GAP_Y: Final = 20.0  # between boxes
CHANNEL_GAP: Final = 8.0  # between lines that pass a layer

LEFT: Final = 0  # the sides of a box and of a column
RIGHT: Final = 1
Size = tuple[float, float]
Point = tuple[float, float]
NO_SIZE: Final[Size] = (0.0, 0.0)


class Slot(NamedTuple):
    """The position of a closed box or of a line that passes a layer: its layer and its corner."""

    layer: int
    x: float
    y: float


class Layout(NamedTuple):
    """The boxes of a level, and after them the places where lines pass between these.

    `out` are the passages of each box through later layers, up to its last dependent or to the
    right border; `into` are those from the left border to a box.
    """

    slots: Sequence[Slot]
    out: Mapping[int, Sequence[int]]
    into: Mapping[int, Sequence[int]]


class Borders(NamedTuple):
    """The boxes of a level that wait for others outside it, and those that others wait for."""

    entered: AbstractSet[int]
    left: AbstractSet[int]


ALONE: Final = Borders(frozenset(), frozenset())


def arrange(
    count: int,
    edges: Iterable[tuple[int, int]],
    sizes: Sequence[Size],
    borders: Borders = ALONE,
) -> Layout:
    """Places closed boxes of these sizes; edges are (needed, waiting) and have no cycle.

    Each layer is one column. All lines of a box share one passage through a layer.
    """
    pairs = sorted(edges)
    before: list[list[int]] = [[] for _ in range(count)]
    behind: list[list[int]] = [[] for _ in range(count)]
    for needed, waiting in pairs:
        before[waiting].append(needed)
        behind[needed].append(waiting)
    layers = _longest_paths(before, behind)
    out, into = _passages(layers, behind, borders)
    for passages in (*out.values(), *into.values()):
        before += ([] for _ in passages)
        behind += ([] for _ in passages)
    _lead_through(pairs, layers, out, into, before, behind)
    return Layout(_place(_order_layers(layers, before, behind), before, sizes), out, into)


def _passages(
    layers: list[list[int]], behind: Sequence[Sequence[int]], borders: Borders
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Adds to the layers where lines pass them; returns those of each box, by layer."""
    layer_of = {box: number for number, layer in enumerate(layers) for box in layer}
    free = len(layer_of)
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for box, own in sorted(layer_of.items()):
        last = max((layer_of[other] for other in behind[box]), default=0)
        last = len(layers) if box in borders.left else last
        for passed, by in (
            (range(own + 1, last), out),
            (range(own if box in borders.entered else 0), into),
        ):
            for layer in passed:
                by.setdefault(box, []).append(free)
                layers[layer].append(free)
                free += 1
    return out, into


def _lead_through(
    pairs: Iterable[tuple[int, int]],
    layers: Sequence[Sequence[int]],
    out: Mapping[int, Sequence[int]],
    into: Mapping[int, Sequence[int]],
    before: list[list[int]],
    behind: list[list[int]],
) -> None:
    """Replaces edges over several layers with edges from layer to layer, through the passages."""
    layer_of = {item: number for number, layer in enumerate(layers) for item in layer}
    steps = set[tuple[int, int]]()
    for needed, waiting in pairs:
        skipped = layer_of[waiting] - layer_of[needed] - 1
        steps.add((out[needed][skipped - 1] if skipped else needed, waiting))
    for box, passages in out.items():
        steps.update(pairwise([box, *passages]))
    for box, passages in into.items():
        steps.update(pairwise([*passages, box]))
    for one in (*before, *behind):
        one.clear()
    for needed, waiting in sorted(steps):
        before[waiting].append(needed)
        behind[needed].append(waiting)


def _place(
    layers: Sequence[Sequence[int]], before: Sequence[Sequence[int]], sizes: Sequence[Size]
) -> list[Slot]:
    count = sum(map(len, layers))
    sizes = _with_lines(sizes, count)
    slots = [Slot(0, 0.0, 0.0)] * count
    centres = [0.0] * count
    x = 0.0
    for number, layer in enumerate(layers):
        for item, y in _stack(layer, sizes, before, centres):
            slots[item] = Slot(number, x, y)
            centres[item] = y + sizes[item][1] / 2
        x += max(sizes[item][0] for item in layer) + GAP_X
    top = min((slot.y for slot in slots), default=0.0)
    return [slot._replace(y=round(slot.y - top, 1)) for slot in slots]


def _with_lines(sizes: Sequence[Size], count: int) -> list[Size]:
    """Returns the sizes of the boxes, then of the lines that pass through layers."""
    return [*sizes, *[NO_SIZE] * (count - len(sizes))]


def spread(slots: Sequence[Slot], closed: Sequence[Size], sizes: Sequence[Size]) -> list[Slot]:
    """Moves boxes and lines apart to make room for opened boxes."""
    closed, sizes = _with_lines(closed, len(slots)), _with_lines(sizes, len(slots))
    columns: dict[int, list[int]] = {}
    for item in sorted(range(len(slots)), key=lambda item: (slots[item].layer, slots[item].y)):
        columns.setdefault(slots[item].layer, []).append(item)
    moved = list(slots)
    right = 0.0
    for items in columns.values():
        width = max(closed[item][0] for item in items)
        down = 0.0
        for item in items:
            moved[item] = slots[item]._replace(x=slots[item].x + right, y=slots[item].y + down)
            down += sizes[item][1] - closed[item][1]
        right += max(0.0, max(sizes[item][0] for item in items) - width)
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
    items: Sequence[int],
    sizes: Sequence[Size],
    before: Sequence[Sequence[int]],
    centres: Sequence[float],
) -> list[tuple[int, float]]:
    """Returns the top of each item of a column: level with its dependencies if there is room."""
    heights = [sizes[item][1] for item in items]
    gaps = [0.0, *(_gap(one, other) for one, other in pairwise(heights))]
    wanted: list[float] = []
    y = -(sum(heights) + sum(gaps)) / 2
    for item, height, gap in zip(items, heights, gaps, strict=True):
        near = [centres[other] for other in before[item]]
        wanted.append(sum(near) / len(near) - height / 2 if near else y + gap)
        y += gap + height
    tops: list[float] = []
    free = -float("inf")
    for top, height, gap in zip(wanted, heights, gaps, strict=True):
        tops.append(max(free + gap, top))
        free = tops[-1] + height
    shift = sum(want - top for want, top in zip(wanted, tops, strict=True)) / len(tops)
    return [(item, round(top + shift, 1)) for item, top in zip(items, tops, strict=True)]


def _gap(height: float, below: float) -> float:
    """Returns the space between two items of a column; lines need less of it than boxes."""
    return (GAP_Y if height else CHANNEL_GAP) / 2 + (GAP_Y if below else CHANNEL_GAP) / 2


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
    """Dependencies between two closed boxes, by their place among all boxes.

    `path` leads around all other boxes: from point to point, each right of the one before, level
    or through the space between two columns.
    """

    needed: int
    waiting: int
    jobs: int  # number of dependencies
    path: Sequence[Point] = ()


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
    closed: Sequence[Size]
    edges: Mapping[tuple[int, int], int]


class _Drawn(NamedTuple):
    """A level with the sizes of its boxes; positions are relative to its corner."""

    parts: Sequence[Part]
    layout: Layout
    sizes: Sequence[Size]
    width: float
    height: float

    def columns(self) -> list[tuple[float, float]]:
        """Returns where each layer begins and ends."""
        found: dict[int, tuple[float, float]] = {}
        for slot, (width, _) in zip(self.layout.slots, self.sizes, strict=False):
            _, end = found.get(slot.layer, (0.0, 0.0))
            found[slot.layer] = slot.x, max(end, slot.x + width)
        return [found[layer] for layer in sorted(found)]


class Levels:
    """The levels of one graph that were viewed; each is split and laid out once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._levels: dict[str, _Level] = {}
        self._groups: dict[str, Part] = {}
        self._layouts: dict[str, Layout] = {}

    def view(self, opened: Sequence[str] = (), reveal: Sequence[int] = ()) -> View:
        """Returns what is shown with these groups open, and those around the jobs of `reveal`.

        If too many groups are open, the last ones win. Unknown ones are ignored.
        """
        wanted = [*opened, *chain.from_iterable(map(self._around, reveal))]
        chosen, left = self._choose(wanted)
        listed = self._boxes(ROOT, chosen)
        shown_in = _shown_in(len(self.graph), listed)
        edges = _edges(self.graph, shown_in) if chosen else _sorted(self._level(ROOT).edges)
        inside: dict[str, _Drawn] = {}
        drawn = self._draw(ROOT, chosen, _borders(listed, edges), inside)
        boxes, corners = _put(listed, inside)
        lines = _Lines(boxes, inside, corners)
        return View(
            boxes, [edge._replace(path=lines.path(edge)) for edge in edges[:MAX_EDGES]], shown_in,
            left, max(0, len(edges) - MAX_EDGES), drawn.width, drawn.height,
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
        level = _Level(made.parts, _closed_sizes(made.parts), made.edges)
        if len(self._levels) >= LEVELS:
            self._forget()
        self._levels[group] = level
        self._groups.update((part.id, part) for part in made.parts if part.is_group)
        return level

    def _forget(self) -> None:
        """Forgets all levels but the first; they are made again when needed."""
        self._levels = {ROOT: self._levels[ROOT]}
        self._layouts.clear()
        self._groups = {part.id: part for part in self._levels[ROOT].parts if part.is_group}

    def _boxes(self, group: str, opened: Collection[str]) -> list[Box]:
        """Returns the boxes of a level and of its open groups, without positions."""
        boxes: list[Box] = []
        for part in self._level(group).parts:
            boxes.append(Box(part, group, part.id in opened, 0.0, 0.0, 0.0, 0.0))
            if part.id in opened:
                boxes += self._boxes(part.id, opened)
        return boxes

    def _draw(
        self,
        group: str,
        opened: Collection[str],
        borders: Mapping[str, Borders],
        inside: dict[str, _Drawn],
    ) -> _Drawn:
        """Adds a level to `inside` after the open groups in it; returns it."""
        level = self._level(group)
        layout = self._layout(group, level, borders.get(group, ALONE))
        drawn = {
            p.id: self._draw(p.id, opened, borders, inside) for p in level.parts if p.id in opened
        }
        sizes = [
            closed if part.id not in drawn else _around_box(drawn[part.id], closed)
            for part, closed in zip(level.parts, level.closed, strict=True)
        ]
        slots = spread(layout.slots, level.closed, sizes)
        ends = [(slot.x + w, slot.y + h) for slot, (w, h) in zip(slots, sizes, strict=False)]
        lowest = max((slot.y for slot in slots), default=0.0)
        inside[group] = _Drawn(
            level.parts, layout._replace(slots=slots), sizes,
            max((x for x, _ in ends), default=0.0),
            max([lowest, *(y for _, y in ends)]),
        )  # fmt: skip
        return inside[group]

    def _layout(self, group: str, level: _Level, borders: Borders) -> Layout:
        if group not in self._layouts:
            made = arrange(len(level.parts), level.edges, level.closed, borders)
            self._layouts[group] = made
        return self._layouts[group]


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


def _borders(boxes: Sequence[Box], edges: Iterable[Edge]) -> dict[str, Borders]:
    """Returns for each open group which boxes of it are joined with others outside it."""
    parents = {box.part.id: box.parent for box in boxes}
    counts = Counter[str]()
    number: dict[str, int] = {}  # of a box in its level
    for name, parent in parents.items():
        number[name] = counts[parent]
        counts[parent] += 1
    chains = [_chain(box, parents) for box in boxes]
    entered: dict[str, set[int]] = {}
    left: dict[str, set[int]] = {}
    for edge in edges:
        needed, waiting = chains[edge.needed], chains[edge.waiting]
        for own, other, found in ((needed, waiting, left), (waiting, needed, entered)):
            for inner, outer in pairwise(own):
                if outer in other:
                    break
                found.setdefault(outer, set()).add(number[inner])
    return {
        group: Borders(entered.get(group, frozenset()), left.get(group, frozenset()))
        for group in {*entered, *left}
    }


def _chain(box: Box, parents: Mapping[str, str]) -> list[str]:
    """Returns a box and the open groups around it, the innermost first."""
    found = [box.part.id]
    while parent := parents[found[-1]]:
        found.append(parent)
    return found


def _put(boxes: Sequence[Box], inside: Mapping[str, _Drawn]) -> tuple[list[Box], dict[str, Point]]:
    """Returns the boxes at their places, and the corner of each level."""
    corners: dict[str, Point] = {ROOT: (0.0, 0.0)}
    slots = {
        part.id: (drawn.layout.slots[number], drawn.sizes[number])
        for drawn in inside.values()
        for number, part in enumerate(drawn.parts)
    }
    placed: list[Box] = []
    for box in boxes:
        slot, (width, height) = slots[box.part.id]
        x, y = corners[box.parent]
        x, y = x + slot.x, y + slot.y
        if box.is_open:
            corners[box.part.id] = x + PADDING, y + HEADER
        placed.append(box._replace(x=x, y=y, width=width, height=height))
    return placed, corners


class _Lines:
    """Leads edges through the passages of all levels between their boxes."""

    def __init__(
        self, boxes: Sequence[Box], inside: Mapping[str, _Drawn], corners: Mapping[str, Point]
    ) -> None:
        self._boxes = boxes
        self._inside = inside
        self._corners = corners
        self._at = {box.part.id: place for place, box in enumerate(boxes)}
        self._parents = {box.part.id: box.parent for box in boxes}
        self._columns = {level: drawn.columns() for level, drawn in inside.items()}
        self._number = {
            part.id: number for drawn in inside.values() for number, part in enumerate(drawn.parts)
        }

    def path(self, edge: Edge) -> list[Point]:
        """Returns the points of an edge."""
        sources, targets = self._around(edge.needed), self._around(edge.waiting)
        while sources[-1] == targets[-1]:
            sources.pop()
            targets.pop()
        source, target = sources[-1], targets[-1]
        there, back = self._outwards(sources, RIGHT), self._outwards(targets, LEFT)
        between = self._layer(target) - self._layer(source) - 1
        passages = self._passages(source, RIGHT)[:between] if between else ()
        return _straight([*there, *self._through(source.parent, passages), *reversed(back)])

    def _around(self, place: int) -> list[Box]:
        """Returns a box and the open groups around it, the innermost first."""
        return [self._boxes[self._at[name]] for name in _chain(self._boxes[place], self._parents)]

    def _outwards(self, chain: Sequence[Box], side: int) -> list[Point]:
        """Returns the points from a box to the border of the column of the last group around it."""
        box = chain[0]
        points = [(box.x + side * box.width, box.y + box.height / 2)]
        for box, outer in zip(chain, [*chain[1:], None], strict=True):
            x, _ = self._corners[box.parent]
            points.append((x + self._columns[box.parent][self._layer(box)][side], points[-1][1]))
            if outer is not None:
                through = self._through(box.parent, self._passages(box, side))
                points += through if side == RIGHT else reversed(through)
                points.append((outer.x + side * outer.width, points[-1][1]))
        return points

    def _through(self, level: str, passages: Sequence[int]) -> list[Point]:
        x, y = self._corners[level]
        points: list[Point] = []
        for item in passages:
            slot = self._inside[level].layout.slots[item]
            begin, end = self._columns[level][slot.layer]
            points += [(x + begin, y + slot.y), (x + end, y + slot.y)]
        return points

    def _passages(self, box: Box, side: int) -> Sequence[int]:
        layout = self._inside[box.parent].layout
        return (layout.out if side == RIGHT else layout.into).get(self._number[box.part.id], ())

    def _layer(self, box: Box) -> int:
        return self._inside[box.parent].layout.slots[self._number[box.part.id]].layer


def _straight(points: Iterable[Point]) -> list[Point]:
    """Returns a path without the points in the middle of a level run."""
    kept: list[Point] = []
    for point in points:
        if len(kept) > 1 and kept[-2][1] == kept[-1][1] == point[1]:
            kept.pop()
        if not kept or kept[-1] != point:
            kept.append(point)
    return kept


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
