"""What a committed transaction means to the engine around it, gathered while it runs."""

from collections.abc import Iterable
from typing import NamedTuple

from windlass.domain.records import Ticket
from windlass.ports.store import News


class Raise(NamedTuple):
    """A bound that may rise once the claim that saw it has committed."""

    shape: int
    place: tuple[int, int] | None
    generation: int


class Effects:
    """What a committed transaction means to the engine around it."""

    def __init__(self) -> None:
        self.arrivals: dict[int, tuple[int, int, int]] = {}  # shape → rank, job, how many
        self.raises: list[Raise] = []
        self.pokes: list[int] = []
        self.ended: list[int] = []
        self.due_at = 0
        self.cascades = False
        self.catalog = False
        self.counts: dict[str, int] = {}
        self.told = False  # other engines have heard of it with the commit
        self.unresolved: list[tuple[int, int, str]] = []  # job, attempt, why: it is to fail

    def arrive(self, tickets: Iterable[Ticket]) -> None:
        """These jobs are ready."""
        arrivals = self.arrivals
        for shape, rank, job, *_ in tickets:
            known = arrivals.get(shape)
            if known is None:
                arrivals[shape] = (rank, job, 1)
            else:
                best = min((known[0], known[1]), (rank, job))
                arrivals[shape] = (*best, known[2] + 1)

    def arrive_at(self, shape: int, rank: int, job: int, count: int) -> None:
        """So many jobs of one shape are ready, the best of them here."""
        known = self.arrivals.get(shape)
        if known is not None:
            rank, job = min((known[0], known[1]), (rank, job))
            count += known[2]
        self.arrivals[shape] = (rank, job, count)

    def fall_due(self, at: int) -> None:
        """Something is to move at this time."""
        if at and (not self.due_at or at < self.due_at):
            self.due_at = at

    def count(self, name: str, by: int = 1) -> None:
        """Add to one of the engine's own counters."""
        self.counts[name] = self.counts.get(name, 0) + by

    def news(self) -> News:
        """What other engines should hear."""
        return News(
            arrivals=tuple((shape, *best) for shape, best in self.arrivals.items()),
            pokes=tuple(self.pokes),
            due_at=self.due_at,
            catalog=self.catalog,
            ended=tuple(self.ended),
        )
