"""The answer to "why is it waiting?", as it is sent and shown.

Each part says what is needed and what is available. Texts are for people; programs read the other
fields.
"""

from typing import Any, Literal

from msgspec import Struct

Cause = Literal[
    "dependency", "operator", "not_before", "backoff", "restored", "rate", "paused", "limit",
    "queue_limit", "no_worker", "busy", "ahead", "sleep", "signal", "question",
    "jobs",
]  # fmt: skip
Action = Literal[
    "resume_queue", "raise_queue_limit", "unblock", "wait", "free_slot", "enable_worker",
    "approve_worker", "start_worker", "set_metadata", "add_worker",
    "send_signal", "answer",
]  # fmt: skip


class Waiting(Struct, frozen=True, kw_only=True):
    """One thing a job waits for; `because` leads from it to the root cause."""

    kind: Cause
    text: str
    job: int | None = None
    until: str | None = None
    because: tuple[str, ...] = ()


class Ability(Struct, frozen=True, kw_only=True):
    """Whether a worker can run a job; `why` is the first obstacle in words, `also` the others."""

    runnable: bool = False
    clause: str | None = None
    needs: str | None = None
    has: str | None = None
    why: str | None = None
    also: tuple[str, ...] = ()

    def said_of(self, what: str) -> str:
        """Returns one line for people, about a worker or about jobs."""
        if self.runnable:
            return f"{what}: can run it"
        return f"{what}: " + "; ".join((self.why or "", *self.also))


class WorkerEntry(Ability, frozen=True, kw_only=True):
    """One worker, or a group of workers that cannot take the job for the same reason."""

    worker: str | None = None
    group: str | None = None
    count: int = 1

    @property
    def text(self) -> str:
        """Returns one line for people."""
        who = f"worker {self.worker}" if self.worker else f"{self.count} workers ({self.group})"
        return self.said_of(who)


class LimitEntry(Struct, frozen=True, kw_only=True):
    """A limit that applies to the job: of its concurrency key, its queue, or a rate."""

    kind: Literal["key", "queue", "rate"]
    name: str
    max: int
    used: int
    binding: bool
    holders: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """Returns one line for people."""
        what = "concurrency key" if self.kind == "key" else self.kind
        held = f", held by {_jobs(self.holders)}" if self.holders else ""
        return f"{what} {self.name} ({self.used} of {self.max} in use{held})"


class Request(Struct, frozen=True, kw_only=True):
    """An API call that carries out a step, and the right that it needs.

    `namespace` is where the right is needed; empty means everywhere.
    """

    method: Literal["POST", "PATCH"]
    path: str
    body: dict[str, Any] | None = None
    needs: str
    namespace: str | None = None


class Step(Struct, frozen=True, kw_only=True):
    """One thing to do; `command` does it, if there is one, and so does `request`."""

    action: Action
    text: str
    worker: str | None = None
    queue: str | None = None
    job: int | None = None
    max: int | None = None
    until: str | None = None
    metadata: dict[str, Any] | None = None
    command: str | None = None
    request: Request | None = None


class Change(Struct, frozen=True, kw_only=True):
    """The smallest change that would let a job run: mostly one step."""

    text: str
    steps: tuple[Step, ...]


class Estimate(Struct, frozen=True, kw_only=True):
    """When a job is likely to start, and the likely range."""

    likely: str
    earliest: str
    latest: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a job is in its state. `ahead_more` means that more than `ahead` jobs come before it.

    `notes` mention its deadlines, a worker reserved for it, and its rejection.
    """

    job: int
    state: str
    summary: str
    waiting_for: tuple[Waiting, ...] = ()
    workers: tuple[WorkerEntry, ...] = ()
    limits: tuple[LimitEntry, ...] = ()
    ahead: int = 0
    ahead_more: bool = False
    estimated_start: Estimate | None = None
    smallest_change: Change | None = None
    notes: tuple[str, ...] = ()


class Column(Struct, frozen=True, kw_only=True):
    """One thing that a worker must have for a job: it meets a clause, or takes jobs now."""

    clause: str
    needs: str


class Cell(Struct, frozen=True, kw_only=True):
    """Whether workers meet a clause, and what they have. null: not checked."""

    met: bool | None
    has: str | None = None


class MatrixRow(Struct, frozen=True, kw_only=True):
    """One worker, or several that differ in nothing that matters to the job."""

    worker: str | None = None
    id: int | None = None
    group: str | None = None
    count: int = 1
    runnable: bool
    cells: tuple[Cell, ...]


class Matrix(Struct, frozen=True, kw_only=True):
    """Workers and the job's requirements, the best match first; `more` workers are not listed."""

    job: int
    columns: tuple[Column, ...]
    rows: tuple[MatrixRow, ...]
    more: int = 0


class WorkEntry(Ability, frozen=True, kw_only=True):
    """Queued jobs of one shape, and why the worker cannot take them."""

    namespace: str
    queue: str
    task: str
    jobs: int
    jobs_more: bool = False

    @property
    def text(self) -> str:
        """Returns one line for people."""
        count = f"more than {self.jobs:,}" if self.jobs_more else f"{self.jobs:,}"
        plural = "job" if self.jobs == 1 and not self.jobs_more else "jobs"
        what = f"{count} {plural} of {self.task} in queue {self.queue}"
        if self.namespace != "default":
            what += f", namespace {self.namespace}"
        return self.said_of(what)


class WorkerExplanation(Struct, frozen=True, kw_only=True):
    """Why a worker is idle, or what it is doing."""

    worker: str
    id: int
    status: str
    slots: int
    held: int
    summary: str
    work: tuple[WorkEntry, ...] = ()


def _jobs(jobs: tuple[int, ...]) -> str:
    return f"job{'s' * (len(jobs) > 1)} " + ", ".join(map(str, jobs))
