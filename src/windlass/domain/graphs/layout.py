"""Places the boxes of one level: layers from left to right, few crossings, stable positions.

The order and the positions depend on the structure only. When a box is opened, only boxes below it
in its column and the columns after it move, by as much as it grows.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

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
