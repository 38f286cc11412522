"""What is shown of a graph with some of its groups open: a bounded number of boxes and edges."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from windlass.domain.graphs.graph import SLICE, WIDE, Graph
from windlass.domain.graphs.groups import ROOT, Part, Split, split
from windlass.domain.graphs.layout import Size, Slot, arrange, spread

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
    """Boxes, each after the group around it, and the edges between them.

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
