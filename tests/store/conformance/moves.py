"""Random row operations for the differential test, each drawn from what a store holds.

A move is one call of a port's method. Numbers come from small ranges, so that moves meet
each other's rows, miss them and double them. What no engine does is kept out: a job
ends once, stands in a place once, and only a ready one is leased.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from tests.store.conformance.rows import facts_at
from windlass.domain.rows.records import JobFacts, Ticket
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId, WorkflowId
from windlass.store.sql.snapshot import Snapshot

T = TypeVar("T")

JOBS = range(1, 13)
SHAPES = range(1, 4)
LIMITS = range(1, 3)
WORKERS = range(1, 5)
RANKS = range(-3, 4)
TIMES = range(1, 30)


class Move(NamedTuple):
    """One call: `role.method(*arguments)`."""

    role: str
    method: str
    arguments: tuple[Any, ...]


class Dice:
    """Draws from small sets, in the words of the moves. The same seed, the same draws."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, things: Sequence[T]) -> T:
        return self._random.choice(things)

    def some(self, things: Sequence[T], most: int = 4) -> list[T]:
        """Different ones in any order, maybe none."""
        return self._random.sample(things, self._random.randint(0, min(most, len(things))))

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def shuffled(self, things: Sequence[T]) -> list[T]:
        return self._random.sample(things, len(things))

    def text(self) -> str | None:
        return self.one([None, "", "why", "“ü”"])

    def ticket(self, job: int) -> Ticket:
        return Ticket(
            shape=ShapeId(self.one(SHAPES)),
            rank=self.one(RANKS),
            job=JobId(job),
            attempt=AttemptNo(self.number(0, 2)),
            workflow=self.one([None, WorkflowId(1), WorkflowId(2)]),
            limit=self.one([None, *LIMITS]),
            excluded=self.one([None, "[[1,2]]"]),
        )

    def facts(self, places: Sequence[Ticket]) -> list[JobFacts]:
        """Where some jobs stand, and where they do not."""
        wanted = self.some(places) + [self.ticket(job) for job in self.some(JOBS, most=1)]
        unique = {place.job: place for place in wanted}
        return [facts_at(place) for place in unique.values()]


Maker = Callable[[Dice, Snapshot], Move]
