"""The jobs of a workflow and their dependencies, as compact arrays.

A job that a retry replaced is not in the graph: its dependents wait for its newest replacement.
Jobs are known by their index, in the order of their ids.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import add
from typing import Final

from windlass.domain.job.dependency_graph import put_in_order

SLICE: Final = 20_000  # dependencies per call into C, which blocks other threads
WIDE: Final = 1 << 20  # more than there are parts


class Graph:
    """Jobs by index: `needs[starts[i]:starts[i + 1]]` are the jobs that job `i` waits for.

    `order` lists each job after its dependencies. `layers` is the length of the longest chain that
    leads to each job.
    """

    __slots__ = ("index", "jobs", "layers", "names", "needs", "order", "starts", "stems")

    def __init__(
        self,
        jobs: Sequence[int],
        names: Sequence[str],
        stems: Sequence[str],
        index: Mapping[int, int],
        starts: "array[int]",
        needs: "array[int]",
        order: Sequence[int],
        layers: "array[int]",
    ) -> None:
        self.jobs = jobs
        self.names = names
        self.stems = stems
        self.starts = starts
        self.needs = needs
        self.order = order
        self.index = index
        self.layers = layers

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def edges(self) -> int:
        """Returns the number of dependencies inside the workflow."""
        return len(self.needs)

    def count_between(self, part_of: Sequence[int], members: Sequence[int]) -> dict[int, int]:
        """Counts the dependencies between parts: the key is needed + waiting × `WIDE`.

        `part_of` is the part of each job, -1 for none. Dependencies inside a part are left out.
        """
        counts: Counter[int] = Counter()
        starts, needs, at = self.starts, self.needs, part_of.__getitem__
        step = max(1, SLICE * len(self) // (self.edges + 1))
        for first in range(0, len(members), step):
            some = members[first : first + step]
            own = chain.from_iterable(
                repeat(part_of[one] * WIDE, starts[one + 1] - starts[one]) for one in some
            )
            needed = chain.from_iterable(needs[starts[one] : starts[one + 1]] for one in some)
            counts.update(map(add, map(at, needed), own))
        return {
            key: count
            for key, count in counts.items()
            if key % WIDE != key // WIDE and key % WIDE != WIDE - 1
        }

    def needs_of(self, number: int) -> "array[int]":
        """Returns the jobs that a job waits for."""
        return self.needs[self.starts[number] : self.starts[number + 1]]


class GraphBuilder:
    """Collects the jobs of a workflow, ascending by id, and builds their graph."""

    def __init__(self) -> None:
        self._jobs = array("q")
        self._names: list[str] = []
        self._stems: list[str] = []
        self._refs = array("q")
        self._ends = array("q", [0])
        self._newer: dict[int, int] = {}

    @property
    def edges(self) -> int:
        """Returns how many dependencies were added so far."""
        return len(self._refs)

    def add(self, job: int, name: str, stem: str, needs: Sequence[int]) -> None:
        """Adds a job with the ids of its dependencies; some may belong to other workflows."""
        self._jobs.append(job)
        self._names.append(name)
        self._stems.append(stem)
        self._refs.extend(needs)
        self._ends.append(len(self._refs))

    def supersede(self, job: int, by: int) -> None:
        """Notes that another job replaced this one."""
        self._newer[job] = by

    def build(self) -> Graph:
        """Returns the graph; dependencies on jobs of other workflows are left out."""
        index = {job: number for number, job in enumerate(self._jobs)}
        starts, needs = self._ends, array("i")
        try:
            for first in range(0, len(self._refs), SLICE):
                needs.extend(map(index.__getitem__, self._refs[first : first + SLICE]))
        except KeyError:
            starts, needs = self._look_up(index)
        order: Sequence[int] = range(len(self._jobs))
        layers = layers_of(starts, needs, order)
        if layers is None:
            starts, needs, order = _put_in_order(starts, needs)
            layers = layers_of(starts, needs, order) or array("i")
        return Graph(self._jobs, self._names, self._stems, index, starts, needs, order, layers)

    def _look_up(self, index: Mapping[int, int]) -> tuple["array[int]", "array[int]"]:
        """Returns each job's dependencies; some were retried or are in other workflows."""
        starts, needs = array("q", [0]), array("i")
        refs, ends = self._refs, self._ends
        for number in range(len(self._jobs)):
            own = refs[ends[number] : ends[number + 1]]
            needs.extend(sorted({index.get(self._newest(ref), -1) for ref in own} - {-1, number}))
            starts.append(len(needs))
        return starts, needs

    def _newest(self, job: int) -> int:
        seen = {job}
        while (newer := self._newer.get(job)) is not None and newer not in seen:
            job = newer
            seen.add(job)
        return job


def layers_of(
    starts: "array[int]", needs: "array[int]", order: Sequence[int]
) -> "array[int] | None":
    """Returns the longest chain to each job; None if `order` has a job before its dependency."""
    layers = array("i", [-1]) * (len(starts) - 1)
    at = layers.__getitem__
    for number in order:
        first, last = starts[number], starts[number + 1]
        if first == last:
            layers[number] = 0
            continue
        own = list(map(at, needs[first:last]))
        if -1 in own:
            return None
        layers[number] = max(own) + 1
    return layers


def _put_in_order(
    starts: "array[int]", needs: "array[int]"
) -> tuple["array[int]", "array[int]", Sequence[int]]:
    """Returns the graph in order. In a cycle, some dependencies are left out."""
    count = len(starts) - 1
    order, circle = put_in_order(
        [needs[starts[number] : starts[number + 1]] for number in range(count)]
    )
    if not circle:
        return starts, needs, order
    order += sorted(set(range(count)) - set(order))
    place = [0] * count
    for position, number in enumerate(order):
        place[number] = position
    kept_starts, kept = array("q", [0]), array("i")
    for number in range(count):
        own = needs[starts[number] : starts[number + 1]]
        kept.extend([other for other in own if place[other] < place[number]])
        kept_starts.append(len(kept))
    return kept_starts, kept, order
