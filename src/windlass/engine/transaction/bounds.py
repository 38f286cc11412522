"""Where to look for the next job: a lower bound per shape, kept in memory.

A bound is never above the truth, up to a notification from another engine. A bound below the
truth only costs a read. Reading the shapes with the lowest bounds first makes the cost of a claim
independent of the number of jobs and, nearly, of shapes.
"""

import heapq
from collections.abc import Callable, Iterable

from windlass.engine.transaction.catalog import Profile
from windlass.store.sql.places import Head

Place = tuple[int, int]  # rank, job


REFRESH_MS = 1_000  # the heads of a shared store are read again at most this often
REFRESH_SHARE = 100  # and for at most this part of the time: dead rows may lie before the heads

# A shape worth reading, from its bound upwards: rank, job, shape.
Candidate = tuple[int, int, int]


class Bounds:
    """Bounds of all shapes believed to have ready jobs, ordered for each profile."""

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self._low: dict[int, Place] = {}
        self._generation: dict[int, int] = {}
        self._heaps: dict[str, tuple[Profile, list[Candidate]]] = {}
        self.refreshed_at: int | None = None  # when all heads were last read, in the store's time
        self.patience_ms = REFRESH_MS  # how old they may get where a claim finds too little

    def age_ms(self, now: int) -> int | None:
        """Returns how long ago all heads were read; None if they must be read first."""
        return None if self.refreshed_at is None else now - self.refreshed_at

    def lower(self, shape: int, rank: int, job: int) -> None:
        """Lowers a bound: a job became ready at this place."""
        self._generation[shape] = self._generation.get(shape, 0) + 1
        low = self._low.get(shape)
        if low is not None and low <= (rank, job):
            return
        self._low[shape] = (rank, job)
        candidate = (rank, job, shape)
        for profile, heap in self._heaps.values():
            if profile.runs(shape):
                heapq.heappush(heap, candidate)

    def place_of(self, shape: int) -> Place | None:
        """Returns the earliest place of a shape's best job; None if it has none."""
        return self._low.get(shape)

    def best_of(self, shapes: Iterable[int], count: int) -> list[Candidate]:
        """Returns the `count` of these shapes with the lowest bounds."""
        low = self._low
        return heapq.nsmallest(count, ((*low[shape], shape) for shape in shapes if shape in low))

    def generations(self, shapes: Iterable[int]) -> dict[int, int]:
        """Returns the current generations, to be passed to `raise_to`."""
        return {shape: self._generation.get(shape, 0) for shape in shapes}

    def raise_to(self, shape: int, place: Place | None, generation: int) -> None:
        """Raises a bound: a claim saw nothing below `place` (None: nothing at all) since that
        generation.

        Of concurrent claims, only the first may raise a bound, since rows that one locked and left
        were hidden from the others. Lowering it is always allowed.
        """
        if self._generation.get(shape, 0) != generation:
            if place is not None:
                self.lower(shape, *place)
            return
        self._generation[shape] = generation + 1
        if place is None:
            self._low.pop(shape, None)
        else:
            self._low[shape] = place

    def replace(self, heads: Iterable[Head], now: int) -> None:
        """Replaces all bounds by the heads just read."""
        self._low.clear()
        self._heaps.clear()
        self.refreshed_at = now
        for head in heads:
            self._generation[head.shape] = self._generation.get(head.shape, 0) + 1
            self._low[head.shape] = (head.rank, head.job)

    def cover(self, now: int, took_ms: int) -> None:
        """Notes that no head lies below its bound; it took so long to find out."""
        self.refreshed_at = now
        self.patience_ms = max(REFRESH_MS, REFRESH_SHARE * took_ms)

    def reset(self) -> None:
        """Forgets all bounds: the next claim reads the heads again."""
        self.refreshed_at = None

    def best(
        self, profile: Profile, count: int, skip: Callable[[int], bool] | None
    ) -> tuple[list[Candidate], Place | None]:
        """Returns the `count` lowest shapes this profile can run, and the bound of the next one.

        Repairs stale entries on the way, so each costs once.
        """
        heap, lowest = self._heap(profile), self._low
        pop, replace = heapq.heappop, heapq.heapreplace
        found: list[Candidate] = []
        kept: list[Candidate] = []
        seen: set[int] = set()
        following: Place | None = None
        while heap:
            top = heap[0]
            rank, job, shape = top
            low = lowest.get(shape)
            if low is None or shape in seen:
                pop(heap)
            elif low > (rank, job):
                replace(heap, (low[0], low[1], shape))
            elif skip is not None and skip(shape):
                kept.append(pop(heap))
                seen.add(shape)
            elif len(found) == count:
                following = (rank, job)
                break
            else:
                found.append(pop(heap))
                seen.add(shape)
        for candidate in (*found, *kept):
            heapq.heappush(heap, candidate)
        return found, following

    def _heap(self, profile: Profile) -> list[Candidate]:
        known = self._heaps.get(profile.digest)
        if known is None:
            heap = [
                (rank, job, shape)
                for shape, (rank, job) in self._low.items()
                if profile.runs(shape)
            ]
            heapq.heapify(heap)
            if len(self._heaps) >= 1_000:
                self._heaps.clear()
            known = self._heaps[profile.digest] = (profile, heap)
        return known[1]
