"""The records that stores keep: plain tuples, one class per table or role.

They are tuples because stores bind them to statements by the hundred. Times are milliseconds. A
missing value is None, and NULL in the stores.
"""

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, Progress
from windlass.domain.values.ids import (
    AttemptNo,
    JobId,
    LeaseNo,
    ShapeId,
    WorkerId,
    WorkflowId,
    shown_attempt,
)

# The values of `Wait.manual`.
BY_OPERATOR: Final = 1  # one of the unmet conditions is an operator's approval
KEPT_WHILE_RUNNING: Final = 2  # the job runs; one of its dependencies was superseded meanwhile
DECIDES: Final = 3  # when its last condition is met, `run_if` decides whether the job runs


class Ticket(NamedTuple):
    """What a job needs to move from one place to the next without its `jobs` row."""

    shape: ShapeId
    rank: int
    job: JobId
    attempt: AttemptNo  # the number of its newest attempt, 0 before the first
    workflow: WorkflowId | None
    limit: int | None
    # JSON [[worker, until_ms], …]: workers that handed it back, and the mark of a suspect
    # (`domain/matching/suspects.py`).
    excluded: str | None

    @property
    def known_limit(self) -> int:
        """Returns the limit of a job that has one."""
        if self.limit is None:
            raise ValueError(f"job {self.job} has no limit")
        return self.limit


class Wait(NamedTuple):
    """A blocked job and the number of its `unmet` conditions."""

    job: JobId
    unmet: int
    manual: int
    not_before: int | None
    age_from: int
    ticket: Ticket

    @property
    def needs_operator(self) -> bool:
        """Returns True if an operator must unblock the job."""
        return self.manual == BY_OPERATOR

    @property
    def is_running(self) -> bool:
        """Returns True if the job runs and keeps the wait for when it is requeued."""
        return self.manual == KEPT_WHILE_RUNNING

    @property
    def decides(self) -> bool:
        """Returns True if `run_if` decides whether the job runs."""
        return self.manual == DECIDES


class Due(NamedTuple):
    """A job that may not start before `at`; `state` is queued, retrying or suspended."""

    at: int
    job: JobId
    state: int
    ticket: Ticket


class NewJob(NamedTuple):
    """The columns of `jobs` that a submit writes."""

    id: JobId
    shape: ShapeId
    workflow: WorkflowId | None
    flags: int
    rank: int
    base: int
    adjustment: int
    age_from: int
    created_at: int
    limit: int | None
    timeout_ms: int | None
    idle_ms: int | None
    supersedes: JobId | None
    spec: bytes


class JobFacts(NamedTuple):
    """The columns of `jobs` that decisions need, read under the row's lock."""

    id: JobId
    shape: ShapeId
    workflow: WorkflowId | None
    state: int | None  # None while the job is open
    flags: int
    rank: int
    base: int
    adjustment: int
    age_from: int
    created_at: int
    limit: int | None
    timeout_ms: int | None
    idle_ms: int | None
    supersedes: JobId | None
    superseded_by: JobId | None
    attempt: AttemptNo
    failed: int
    lost: int
    returned: int
    handed_back: int  # attempts that no worker started
    worker: WorkerId | None  # the worker of the last attempt, if the job ended during one
    incarnation: int | None
    excluded: str | None

    @property
    def is_open(self) -> bool:
        """Returns True if the job has not ended."""
        return self.state is None

    @property
    def final_state(self) -> int:
        """Returns the state of a job that has ended."""
        if self.state is None:
            raise ValueError(f"job {self.id} is open")
        return self.state


class JobTry(NamedTuple):
    """An attempt has ended and the job stays open: the new values of its counters."""

    job: JobId
    attempt: AttemptNo
    failed: int
    lost: int
    returned: int
    handed_back: int
    excluded: str | None


class JobEnd(NamedTuple):
    """A job reached a terminal state, during an attempt on `worker` or without one."""

    job: JobId
    state: int
    flags: int
    attempt: AttemptNo
    failed: int
    lost: int
    worker: WorkerId | None
    incarnation: int | None
    assigned_at: int | None
    started_at: int | None
    finished_at: int
    failure: int
    exit_code: int | None
    message: str | None
    reason: str | None
    result: bytes | None


class Attempt(NamedTuple):
    """An ended attempt of a job that continued; `queued` if it was handed back unstarted."""

    job: JobId
    number: AttemptNo
    worker: WorkerId
    incarnation: int
    state: int
    failure: int
    exit_code: int | None
    message: str | None
    assigned_at: int
    started_at: int | None
    finished_at: int

    @property
    def is_handed_back(self) -> bool:
        """Returns True if none of it ran: it is not counted in what people see."""
        return self.state == State.QUEUED.code


class ShownNumbers:
    """Returns the numbers that people see for one job's attempts; call it with the stored ones.

    An attempt that was handed back has the number of the next one.
    """

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self._handed_back = sorted(row.number for row in attempts if row.is_handed_back)

    def __call__(self, number: int) -> int:
        return shown_attempt(number, bisect_left(self._handed_back, number))


class Lease(NamedTuple):
    """The current attempt: `lease` is its number in one rising sequence."""

    job: JobId
    attempt: AttemptNo
    lease: LeaseNo
    worker: WorkerId
    incarnation: int
    state: int
    assigned_at: int
    started_at: int | None  # None while it is only assigned
    activity_at: int | None
    deadline_at: int | None  # None if it may run for ever
    timeout_ms: int | None
    idle_ms: int | None
    limit: int | None
    reason: str | None  # why it was told to stop
    queue_limit: int | None = None  # the queue limit it counts against
    suspicion: int = 0  # see `domain/matching/suspects.py`
    indices: str | None = None  # JSON {resource: [index, …]}: the indexed resources it holds

    @property
    def known_start(self) -> int:
        """Returns when the attempt of a running lease started."""
        if self.started_at is None:
            raise ValueError(f"attempt {self.attempt} of job {self.job} has not started")
        return self.started_at

    @property
    def last_activity_at(self) -> int | None:
        """Returns when the attempt last showed activity, or when it started."""
        return self.started_at if self.activity_at is None else self.activity_at


class JobRecord(NamedTuple):
    """A whole row of `jobs`, and data from other tables if it was read for display.

    The first fields are the row. The others keep their defaults if only the row was read: `state`
    also covers open jobs (it follows from their place), `not_before` is when a planned or
    backing-off job may start (None: at once), and `worker` is the name of the current or last
    worker; None if that worker is gone. `log`, `progress` and `dynamic` belong to the newest
    attempt, `artifacts` to the accepted one. Lists of jobs leave `attempts` and `artifacts` empty.
    """

    facts: JobFacts
    assigned_at: int | None
    started_at: int | None
    finished_at: int | None
    failure: int
    exit_code: int | None
    message: str | None
    reason: str | None
    result: bytes | None
    spec: bytes

    state: int = 0
    not_before: int | None = None
    lease: Lease | None = None
    worker: str | None = None
    log: LogRow | None = None
    progress: Progress | None = None
    dynamic: Dynamic | None = None
    attempts: tuple[Attempt, ...] = ()
    artifacts: tuple[ArtifactRow, ...] = ()
    workers: tuple[tuple[int, str], ...] = ()  # names of the workers that ran the attempts


class Worker(NamedTuple):
    """One enrolled worker; `status` is a code of `WorkerStatus`."""

    id: WorkerId
    name: str
    incarnation: int
    seq: int
    status: int
    last_seen: int
    last_lease: int
    slots: int
    static: str  # JSON object set by operators
    dynamic: str  # JSON object reported by the agent
    troubles: str | None  # JSON of the evidence against it (`domain/matching/probation.py`)
    reason: str | None  # why it is draining, disabled, offline or on probation
    enrolled_at: int


class ShapeRow(NamedTuple):
    id: ShapeId
    digest: str
    body: bytes  # the shape as JSON


class QueueRow(NamedTuple):
    """A queue with settings of its own; 0 means no limit."""

    name: str
    weight: int
    paused: int
    max_running: int = 0
    max_per_worker: int = 0
    preempts: int = 0  # its jobs may preempt jobs of lower queues
    limit: int | None = None  # the row of `limits` that counts its running jobs
    isolation: str | None = None  # the weakest mode its jobs may run in; None for any
    timeout_ms: int | None = None  # for jobs without their own; 0: none, None: the default


class LimitRow(NamedTuple):
    id: int
    namespace: str
    key: str
    max: int
    leased: int


class RateRow(NamedTuple):
    """The newest `keep` starts of jobs under a rate."""

    namespace: str
    key: str
    keep: int
    starts: str  # JSON, ascending


class Reservation(NamedTuple):
    """A worker that is reserved for a job that finds no room anywhere."""

    worker: WorkerId
    job: JobId
    shape: ShapeId
    since: int


Spans = tuple[tuple[int, int], ...]
"""Rising ids as spans, (first, last) each.

After (0, 0) come pairs: a job's place in the submission, and the job that already had its key.
"""


class KeyRow(NamedTuple):
    """The owner of a key: a job, or a submission that begins with this job.

    `digest` is the digest of what was submitted, `spans` are the ids of a submission's jobs.
    """

    namespace: str
    key: str
    job: int
    digest: str
    spans: Spans | None = None


class CascadeKind(IntEnum):
    """What to do with the dependents of a job, with the job itself, or with a workflow's jobs."""

    SATISFY = 1
    ABORT = 2
    REVIVE = 3  # supersede jobs that were aborted because of this job
    RELEASE = 4  # the job's last own condition was met, but its age must be recomputed
    CANCEL = 5  # all open jobs of a workflow
    STOP = 6  # the same, because one of them failed
    RETRY = 7  # supersede the failed jobs of a workflow
    INHERIT = 9  # rank again the jobs that others wait for; `reason` lists the others
    DECIDE = 10  # the job's last own condition was met: `run_if` decides whether it runs
    FAIL = 8  # abort the dependents of the job, and satisfy those that accept any end


class Cascade(NamedTuple):
    """An intent that is kept until it is done: about a job, a workflow, or neither (INHERIT)."""

    id: int
    job: JobId | None
    workflow: WorkflowId | None
    kind: int
    cursor: int  # chunks of dependents below this number, or jobs up to this id, are done
    reason: str | None

    @classmethod
    def of_job(cls, job: JobId, kind: CascadeKind, reason: str | None = None) -> "Cascade":
        """Returns an intent about the dependents of a job, or about the job itself."""
        return cls(0, job, None, kind, 0, reason)

    @classmethod
    def of_workflow(cls, workflow: WorkflowId, kind: CascadeKind, reason: str) -> "Cascade":
        """Returns an intent about all jobs of a workflow."""
        return cls(0, None, workflow, kind, 0, reason)

    @property
    def known_job(self) -> int:
        """Returns the job of an intent that is about one."""
        if self.job is None:
            raise ValueError(f"cascade {self.id} is about no job")
        return self.job

    @property
    def known_workflow(self) -> int:
        """Returns the workflow of an intent that is about one."""
        if self.workflow is None:
            raise ValueError(f"cascade {self.id} is about no workflow")
        return self.workflow


class WorkflowRow(NamedTuple):
    id: WorkflowId
    namespace: str
    name: str
    state: int
    run: int
    flags: int
    created_at: int
    finished_at: int | None
    counts: tuple[int, ...]  # indexed by state code; element 0 counts forgiven failures


class WorkflowAbout(NamedTuple):
    """What a workflow was submitted with; read only to show or join it."""

    workflow: int
    base: int  # the priority of jobs that set none
    key: str | None
    reason: str | None  # why it was canceled
    body: bytes  # the rest, JSON of `Details` in `domain/lifecycle/workflow_state.py`


class Waited(NamedTuple):
    """A job that ended while it waited, and its state until then."""

    job: JobId
    state: int
    shape: ShapeId
    workflow: WorkflowId | None
    limit: int | None
    flags: int
    attempt: AttemptNo


class Completed(NamedTuple):
    """A completed job, and the counters it changes."""

    job: JobId
    shape: ShapeId
    workflow: WorkflowId | None


class Freed(NamedTuple):
    """Jobs whose last condition was met: those that are ready now, and those that are due later."""

    ready: list[Ticket]
    others: list[Wait]


# The fields of `NewJob` as a plain tuple. A record costs three times as much, which matters for
# hundreds of jobs at once.
JobColumns: TypeAlias = tuple[
    int, int, int | None, int, int, int, int, int, int, int | None, int | None, int | None,
    int | None, bytes
]  # fmt: skip


PROTOCOL: Final = 1  # version of the interface between client libraries and the database function
MAX_JOBS: Final = 100_000  # in one submission


class InboxRow(NamedTuple):
    """One submission that its user committed and that has not become jobs yet.

    `jobs` are the ids its jobs will have, ascending in the order of their dependencies.
    """

    id: int
    at: int
    jobs: tuple[int, ...]
    submitted_by: str
    namespaces: tuple[str, ...]  # namespaces that its submitter may use; empty: all
    body: bytes  # a `SubmitRequest` as JSON


class JobAlias(NamedTuple):
    """Says that the key of a submitted job was taken, and which job has it."""

    job: int
    became: int
    at: int
