"""What a committed transaction changes in the engine around it, collected while it runs.

`Counters` add it up, as an operator reads them.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from windlass.domain.rows.records import QueueRow, Ticket
from windlass.store.store import News

_shape = attrgetter("shape")


class Raise(NamedTuple):
    """A bound that may rise once the claim that saw it has committed."""

    shape: int
    place: tuple[int, int] | None
    generation: int


class WorkerLoad:
    """What a worker holds after a claim: counts by shape, and the new jobs by id."""

    __slots__ = ("given", "incarnation", "last_lease", "rest")

    def __init__(self, rest: Mapping[int, int]) -> None:
        self.rest = dict(rest)  # shape → earlier leases
        self.given: dict[int, int] = {}  # job → shape
        self.incarnation = 0
        self.last_lease = 0


class Effects:
    """What a committed transaction changes in the engine around it."""

    def __init__(self) -> None:
        self.arrivals: dict[int, tuple[int, int, int]] = {}  # shape → rank, job, number of jobs
        self.raises: list[Raise] = []
        self.pokes: list[int] = []
        self.ended: list[int] = []  # jobs
        self.ended_workflows: list[int] = []
        self.due_at: int | None = None  # when the first of the new planned jobs is due
        self.cascades = False
        self.any_suspects = False  # a worker has failed enough jobs to be judged at once
        self.catalog = False
        self.counts: dict[str, int] = {}
        self.announced = False  # the commit itself has notified the other engines
        self.unresolved: list[tuple[int, int, str]] = []  # job, attempt, reason: these must fail
        self.refused: list[tuple[int, int]] = []  # (worker, shape): the worker has no room for it
        self.declined: list[int] = []  # workers that take no job for now
        self.loads: dict[int, WorkerLoad] = {}  # by worker, if there are gates
        self.leaving: set[int] = set()  # workers whose leases have ended
        self.queues: list[QueueRow] = []  # the new settings of queues
        self.freed: dict[str, int] = {}  # limited queue → how many more of its jobs may run
        self.opening: dict[int, int] = {}  # shape → when its rate lets the next job start

    def arrive(self, tickets: Iterable[Ticket]) -> None:
        """Notes that these jobs are ready."""
        for shape, group in groupby(sorted(tickets), _shape):
            alike = list(group)
            self.arrive_at(shape, alike[0].rank, alike[0].job, len(alike))

    def arrive_at(self, shape: int, rank: int, job: int, count: int) -> None:
        """Notes that `count` jobs of one shape are ready, and the place of the best."""
        known = self.arrivals.get(shape)
        if known is not None:
            rank, job = min((known[0], known[1]), (rank, job))
            count += known[2]
        self.arrivals[shape] = (rank, job, count)

    def fall_due(self, at: int) -> None:
        """Notes that a job is due at this time."""
        if self.due_at is None or at < self.due_at:
            self.due_at = at

    def reopen(self, shape: int, at: int) -> None:
        """Notes when jobs of this shape may start again."""
        self.opening[shape] = min(at, self.opening.get(shape, at))

    def free(self, queue: str, by: int) -> None:
        """Notes that `by` more jobs of a limited queue may run."""
        self.freed[queue] = self.freed.get(queue, 0) + by

    def count(self, name: str, by: int = 1) -> None:
        """Adds to one of the engine's own counters."""
        self.counts[name] = self.counts.get(name, 0) + by

    def news(self) -> News:
        """Returns what other engines should know."""
        return News(
            arrivals=tuple((shape, *best) for shape, best in self.arrivals.items()),
            pokes=tuple(self.pokes),
            due_at=self.due_at or 0,
            catalog=self.catalog,
            ended=tuple(self.ended),
            ended_workflows=tuple(self.ended_workflows),
        )


class LoopRounds(msgspec.Struct, frozen=True):
    """The rounds of one loop in this process: how long the last took, how many failed."""

    interval_ms: int
    took_ms: int
    failures: int


class Metrics(msgspec.Struct, kw_only=True):
    """Counts since this engine started; `queue_depth` is the store's, per queue.

    `assignment_attempts` counts slots for which jobs were requested, also by idle workers;
    successes are assigned jobs, failures the ones that came back before they ran.
    `worker_failure_rate` is the share of failed assignments that workers caused. `last_run_ms` says
    when each loop last ran, in the store's time. `wanted` is how many workers each pool needs, if
    this engine sizes the pools.
    """

    queue_depth: dict[str, int] = {}
    assignment_attempts: int = 0
    assignment_successes: int = 0
    assignment_failures: int = 0
    retries: int = 0
    timeouts: int = 0
    orphans: int = 0
    worker_failures: int = 0
    worker_failure_rate: float = 0.0
    last_run_ms: dict[str, int] = {}
    loops: dict[str, LoopRounds] = {}
    wanted: dict[str, int] = {}


class Counters:
    """Adds up the effects of commits."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._last_run: dict[str, int] = {}
        self._loops: dict[str, LoopRounds] = {}
        self.wanted: dict[str, int] = {}  # by pool; set by the loop that sizes them

    def add(self, counts: dict[str, int]) -> None:
        """Counts what a commit did."""
        for name, by in counts.items():
            self._counts[name] = self._counts.get(name, 0) + by

    def ran(self, loop: str, now: int) -> None:
        """Records that a loop has run."""
        self._last_run[loop] = now

    def end_round(self, loop: str, interval_ms: int, took_ms: int, failed: bool) -> None:
        """Records how a round of a loop went."""
        known = self._loops.get(loop)
        failures = (known.failures if known else 0) + failed
        self._loops[loop] = LoopRounds(interval_ms, took_ms, failures)

    def read(self, depth: dict[str, int]) -> Metrics:
        """Returns the metrics, together with the store's queue depths."""
        counts = self._counts
        attempts = counts.get("assignment_attempts", 0)
        successes = counts.get("assignment_successes", 0)
        failures = counts.get("worker_failures", 0)
        return Metrics(
            queue_depth=depth,
            assignment_attempts=attempts,
            assignment_successes=successes,
            assignment_failures=counts.get("assignment_failures", 0),
            retries=counts.get("retries", 0),
            timeouts=counts.get("timeouts", 0),
            orphans=counts.get("orphans", 0),
            worker_failures=failures,
            worker_failure_rate=failures / successes if successes else 0.0,
            last_run_ms=dict(self._last_run),
            loops=dict(self._loops),
            wanted=dict(self.wanted),
        )
