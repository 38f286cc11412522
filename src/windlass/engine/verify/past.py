"""The state according to the events alone: jobs, workers, workflows, queues, and what is leased."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from windlass.domain.lifecycle.states import ACTIVE_CODES, TERMINAL_CODES
from windlass.domain.lifecycle.workflow_state import COUNTS, WorkflowState
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import Event


class QueuePast:
    """One queue after the events so far; 0 means no limit."""

    __slots__ = ("active", "max_per_worker", "max_running")

    def __init__(self) -> None:
        self.active = 0
        self.max_running = self.max_per_worker = 0


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


class JobPast:
    """One job after the events so far; `closed` is its newest attempt that has ended."""

    __slots__ = (
        "adjustment",
        "attempt",
        "base",
        "closed",
        "failed",
        "handed_back",
        "incarnation",
        "lost",
        "returned",
        "state",
        "superseded_by",
        "supersedes",
        "told_to_stop",
        "tries",
        "worker",
    )

    def __init__(self) -> None:
        self.state = 0
        self.attempt = 0
        self.closed = 0
        self.failed = self.lost = self.returned = self.handed_back = 0
        self.base = self.adjustment = 0
        self.worker = self.incarnation = 0  # of the newest attempt
        self.supersedes: int | None = None
        self.superseded_by: int | None = None
        self.told_to_stop = False
        # Number, worker and incarnation of the attempts after which the job continued.
        self.tries: list[tuple[int, int, int]] = []

    @property
    def active(self) -> bool:
        """Returns True if an attempt is active."""
        return self.state in ACTIVE_CODES

    @property
    def ended(self) -> bool:
        """Returns True if the job has ended."""
        return self.state in TERMINAL_CODES


class WorkerPast:
    """One worker after the events so far."""

    __slots__ = ("dynamic", "incarnation", "removed", "running", "slots", "static", "status")

    def __init__(self) -> None:
        self.incarnation = 0
        self.status = int(WorkerStatus.ONLINE)
        self.slots = 0  # 0: the log does not say
        self.dynamic: str | None = None
        self.static: str | None = None
        self.running = 0  # leases for which a process may exist
        self.removed = False


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


class WorkflowPast:
    """One workflow after the events so far."""

    __slots__ = ("counts", "run", "state")

    def __init__(self) -> None:
        self.state = int(WorkflowState.QUEUED)
        self.run = 1
        self.counts = [0] * COUNTS


class LimitPast:
    """One concurrency limit after the events so far."""

    __slots__ = ("active", "max", "set_at")

    def __init__(self) -> None:
        self.active = 0
        self.max = 0
        self.set_at = -1

    def set_max(self, value: int, at: int) -> None:
        """Sets the maximum from a submit; of several at the same time the largest counts."""
        self.max = max(value, self.max) if at == self.set_at else value
        self.set_at = at


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
