"""The state according to the events alone, beside the snapshot it is compared with.

The snapshot knows about jobs, shapes and workers what events do not repeat. `Findings` collects the
violations.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import DEFAULT_NAMESPACE
from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    ASSIGNED,
    CANCELING,
    QUEUED,
    RETRYING,
    TERMINAL_CODES,
)
from windlass.domain.lifecycle.workflow_state import COUNTS, WorkflowState
from windlass.domain.matching.matching import metadata_of
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import BaselineRow, Event, is_hand_back
from windlass.domain.rows.records import JobRecord
from windlass.domain.values.ids import ShapeId
from windlass.store.sql.snapshot import Snapshot


@dataclass(slots=True, eq=False)
class QueuePast:
    """One queue after the events so far; 0 means no limit."""

    active: int = 0
    max_running: int = 0
    max_per_worker: int = 0


class Holdings:
    """Leases by worker and shape and by queue, and starts under rates."""

    def __init__(self) -> None:
        self.queues: dict[str, QueuePast] = {}
        self.starts: dict[tuple[str, str], list[int]] = {}
        self._held: dict[int, Counter[int]] = {}

    def queue(self, name: str) -> QueuePast:
        return self.queues.setdefault(name, QueuePast())

    def held(self, worker: int) -> Counter[int]:
        """Returns the shapes of the jobs that a worker holds."""
        return self._held.setdefault(worker, Counter())

    def take(self, worker: int, shape: int, queue: str, jobs: int) -> None:
        """Adds leases to a worker, or removes them."""
        self.held(worker)[shape] += jobs
        self.queue(queue).active += jobs

    def set_limits(self, data: dict[str, Any]) -> None:
        """Sets new limits of a queue."""
        queue = self.queue(data["queue"])
        queue.max_running = data["max_running"]
        queue.max_per_worker = data["max_per_worker"]


@dataclass(slots=True, eq=False)
class JobPast:
    """One job after the events so far; `closed` is its newest attempt that has ended."""

    state: int = 0
    attempt: int = 0
    closed: int = 0
    failed: int = 0
    lost: int = 0
    returned: int = 0
    handed_back: int = 0
    base: int = 0
    adjustment: int = 0
    worker: int = 0  # of the newest attempt
    incarnation: int = 0
    supersedes: int | None = None
    superseded_by: int | None = None
    told_to_stop: bool = False
    # Number, worker and incarnation of the attempts after which the job continued.
    tries: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def active(self) -> bool:
        """Returns True if an attempt is active."""
        return self.state in ACTIVE_CODES

    @property
    def ended(self) -> bool:
        """Returns True if the job has ended."""
        return self.state in TERMINAL_CODES


def apply_move(job: JobPast, event: Event, data: Mapping[str, Any]) -> None:
    """Applies a transition of a job."""
    if event.source == 0:
        job.adjustment = data.get("adjustment", 0)
        job.supersedes = data.get("supersedes")
    if event.to == ASSIGNED:
        job.attempt, job.worker, job.incarnation = event.attempt, event.worker, event.incarnation
    elif event.source in ACTIVE_CODES and event.to not in ACTIVE_CODES:
        job.closed = event.attempt
        if event.to not in TERMINAL_CODES:
            job.tries.append((event.attempt, event.worker, event.incarnation))
    if event.to == CANCELING:
        job.told_to_stop = True
    counts = data.get("counts")
    job.failed += counts == "failed"
    job.lost += counts == "lost"
    # The return that fails a job is not counted: it is the one beyond the limit.
    job.returned += counts == "returned" and event.to in (QUEUED, RETRYING)
    job.handed_back += is_hand_back(event, data)
    job.state = event.to


@dataclass(slots=True, eq=False)
class WorkerPast:
    """One worker after the events so far."""

    incarnation: int = 0
    status: int = int(WorkerStatus.ONLINE)
    slots: int = 0  # 0: the log does not say
    dynamic: str | None = None
    static: str | None = None
    running: int = 0  # leases for which a process may exist
    removed: bool = False


def apply_worker_event(worker: WorkerPast, event: Event, data: Mapping[str, Any]) -> None:
    """Applies an event about a worker."""
    status = data.get("status")
    if status == "enrolled":
        worker.incarnation = event.incarnation
        worker.slots = data.get("slots", 0)
        worker.dynamic = data.get("metadata")
        if event.incarnation == 1 and worker.static is None:
            worker.static = "{}"  # a new worker has no labels
        if data.get("pending"):
            worker.status = int(WorkerStatus.PENDING_APPROVAL)
        elif data.get("draining"):
            worker.status = int(WorkerStatus.DRAINING)
        elif worker.status != WorkerStatus.DISABLED:
            worker.status = int(WorkerStatus.ONLINE)
    elif status == "removed":
        worker.removed = True
    elif status is not None:
        worker.status = int(WorkerStatus[status.upper()])
    elif "metadata" in data:
        worker.dynamic = data["metadata"]
    if "static" in data:
        worker.static = json.dumps(data["static"])


def workers_from(baseline: Iterable[BaselineRow]) -> dict[int, WorkerPast]:
    """Returns the workers as of the last event that retention removed."""
    return {row.id: filled(WorkerPast(), json.loads(row.body)) for row in baseline}


@dataclass(slots=True, eq=False)
class WorkflowPast:
    """One workflow after the events so far."""

    state: int = int(WorkflowState.QUEUED)
    run: int = 1
    counts: list[int] = field(default_factory=lambda: [0] * COUNTS)


@dataclass(slots=True, eq=False)
class LimitPast:
    """One concurrency limit after the events so far."""

    active: int = 0
    max: int = 0
    set_at: int = -1

    def set_max(self, value: int, at: int) -> None:
        """Sets the maximum from a submit; of several at the same time the largest counts."""
        self.max = max(value, self.max) if at == self.set_at else value
        self.set_at = at


T = TypeVar("T")


def filled(past: T, body: Mapping[str, Any]) -> T:
    """Sets what a row of the baseline says."""
    for name, value in body.items():
        setattr(past, name, value)
    return past


class Past:
    """The state after the events so far."""

    def __init__(self) -> None:
        self.jobs: dict[int, JobPast] = {}
        self.workers: dict[int, WorkerPast] = {}
        self.workflows: dict[int, WorkflowPast] = {}
        self.limits: dict[int, LimitPast] = {}
        self.paused: dict[str, bool] = {}
        self.holdings = Holdings()
        self.slots: dict[tuple[int, int], int] = {}  # schedule and slot → its workflow
        self.pools: dict[str, set[str]] = {}  # the tokens of workers that are not gone
        self.seq = 0
        self.trimmed = 0  # the last event that retention has removed
        self.newest_trimmed_job = 0  # no job above it was submitted by a removed event
        self.seeded: set[int] = set()  # jobs that ended before the baseline
        self.missing: dict[int, int] = {}  # jobs in the log that do not exist → seq

    def worker(self, worker: int) -> WorkerPast:
        """Returns a worker; adds it if it is new."""
        return self.workers.setdefault(worker, WorkerPast())

    def workflow(self, workflow: int) -> WorkflowPast:
        """Returns a workflow; adds it if it is new."""
        return self.workflows.setdefault(workflow, WorkflowPast())

    def limit(self, limit: int) -> LimitPast:
        """Returns a limit; adds it if it is new."""
        return self.limits.setdefault(limit, LimitPast())


_shape_decoder = msgspec.json.Decoder(Shape)
MAX_FINDINGS = 1_000  # one bug can break an invariant for every job; the first ones are enough


class JobReferences(msgspec.Struct):
    """The fields of a stored spec that refer to other jobs."""

    namespace: str = DEFAULT_NAMESPACE
    after: tuple[int | str, ...] = ()
    after_any: tuple[int | str, ...] = ()
    concurrency: Concurrency | None = None
    key: str | None = None
    retries: int | None = None
    priority: int | str | None = None


_ties_decoder = msgspec.json.Decoder(JobReferences)


class SnapshotIndex:
    """The snapshot, by id."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.jobs: dict[int, JobRecord] = {row.facts.id: row for row in snapshot.jobs}
        self.shapes = {row.id: _shape_decoder.decode(row.body) for row in snapshot.shapes}
        self.workers = {row.id: row for row in snapshot.workers}
        self.workflows = {row.id for row in snapshot.workflows}
        self._matches: dict[tuple[int, str, str], bool] = {}

    def ties(self, job: int) -> JobReferences:
        """Returns a job's references; empty if the job is unknown."""
        row = self.jobs.get(job)
        return JobReferences() if row is None else _decode_ties(row.spec)

    def queue_of(self, job: int) -> str:
        """Returns the queue of a job."""
        return self.shapes[self.jobs[job].facts.shape].queue

    def runs(self, shape: int, dynamic: str, static: str) -> bool:
        """Returns True if a worker with this metadata can run jobs of this shape."""
        key = shape, dynamic, static
        known = self._matches.get(key)
        if known is None:
            metadata = metadata_of(static, dynamic)
            known = self._matches[key] = can_run(self.shapes[ShapeId(shape)], metadata) is None
        return known


@lru_cache(maxsize=4_096)
def _decode_ties(spec: bytes) -> JobReferences:
    return _ties_decoder.decode(spec)


class Violation(Struct, frozen=True):
    """A broken invariant, by its name in the design: "S3". `seq` is the event's, if any."""

    invariant: str
    message: str
    job: int = 0
    seq: int = 0


class Findings:
    """The violations found so far, a bounded number."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def add(self, invariant: str, message: str, job: int = 0, seq: int = 0) -> None:
        """Adds a violation."""
        if len(self.violations) < MAX_FINDINGS:
            self.violations.append(Violation(invariant, message, job, seq))
