"""The records that stores keep: plain tuples, one class for each table or role.

They are tuples because the stores bind them to statements by the hundred. Times are
milliseconds; 0 stands for "none" in every integer column, so that the three stores
compare equal.
"""

from collections.abc import Callable
from enum import IntEnum
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

# What `Wait.manual` says.
BY_OPERATOR: Final = 1  # one of the unmet conditions is an operator's
KEPT_WHILE_RUNNING: Final = 2  # the job runs; a dependency of it was superseded meanwhile


class Ticket(NamedTuple):
    """What a job needs to move on from one place to the next without its `jobs` row."""

    shape: int
    rank: int
    job: int
    attempt: int  # the number of its newest attempt, 0 before the first
    workflow: int
    limit: int
    excluded: str | None  # JSON [[worker, until_ms], …]: workers that handed it back


class Wait(NamedTuple):
    """A blocked job and the number of its `unmet` conditions."""

    job: int
    unmet: int
    manual: int
    not_before: int
    age_from: int
    ticket: Ticket

    @property
    def needs_operator(self) -> bool:
        """Whether an operator has to unblock the job."""
        return self.manual == BY_OPERATOR

    @property
    def is_running(self) -> bool:
        """Whether the job runs, and the wait is kept for when it comes back."""
        return self.manual == KEPT_WHILE_RUNNING


class Due(NamedTuple):
    """A job that may not start before `at`; `state` is queued or retrying."""

    at: int
    job: int
    state: int
    ticket: Ticket


class NewJob(NamedTuple):
    """The columns of `jobs` that a submit writes."""

    id: int
    shape: int
    workflow: int
    flags: int
    rank: int
    base: int
    adjustment: int
    age_from: int
    created_at: int
    limit: int
    timeout_ms: int
    idle_ms: int
    supersedes: int
    spec: bytes


class JobFacts(NamedTuple):
    """The columns of `jobs` that decisions need, read under the row's lock."""

    id: int
    shape: int
    workflow: int
    state: int  # 0 while the job is open
    flags: int
    rank: int
    base: int
    adjustment: int
    age_from: int
    created_at: int
    limit: int
    timeout_ms: int
    idle_ms: int
    supersedes: int
    superseded_by: int
    attempt: int
    failed: int
    lost: int
    returned: int
    worker: int  # who ran the last attempt, if the job ended with one
    incarnation: int
    excluded: str | None

    @property
    def is_open(self) -> bool:
        """Whether the job has not ended."""
        return self.state == 0


class JobRecord(NamedTuple):
    """A whole row of `jobs`, for showing, verifying and comparing."""

    facts: JobFacts
    assigned_at: int
    started_at: int
    finished_at: int
    failure: int
    exit_code: int | None
    message: str | None
    reason: str | None
    result: bytes | None
    spec: bytes


class JobTry(NamedTuple):
    """An attempt closed and the job stays open: its counters move."""

    job: int
    attempt: int
    failed: int
    lost: int
    returned: int
    excluded: str | None


class JobEnd(NamedTuple):
    """A job reached a terminal state; `worker` is 0 if no attempt ended with it."""

    job: int
    state: int
    flags: int
    attempt: int
    failed: int
    lost: int
    worker: int
    incarnation: int
    assigned_at: int
    started_at: int
    finished_at: int
    failure: int
    exit_code: int | None
    message: str | None
    reason: str | None
    result: bytes | None


class Attempt(NamedTuple):
    """A closed attempt after which the job went on."""

    job: int
    number: int
    worker: int
    incarnation: int
    state: int
    failure: int
    exit_code: int | None
    message: str | None
    assigned_at: int
    started_at: int
    finished_at: int


class Lease(NamedTuple):
    """An attempt in force: `lease` is its number in one rising sequence."""

    job: int
    attempt: int
    lease: int
    worker: int
    incarnation: int
    state: int
    assigned_at: int
    started_at: int
    activity_at: int
    deadline_at: int
    timeout_ms: int
    idle_ms: int
    limit: int
    reason: str | None  # why it was told to stop
    queue_limit: int = 0  # the limit of its queue that it counts under

    @property
    def last_activity_at(self) -> int:
        """When the attempt last gave a sign of life, or when it started."""
        return self.activity_at or self.started_at


class Worker(NamedTuple):
    """One enrolled worker; `status` is a code of `domain.workers.WorkerStatus`."""

    id: int
    name: str
    incarnation: int
    seq: int
    status: int
    last_seen: int
    last_lease: int
    slots: int
    static: str  # JSON object set by operators
    dynamic: str  # JSON object reported by the agent
    troubles: str | None  # JSON [[at, job], …]: recent infrastructure failures
    reason: str | None  # why it is draining, disabled or offline
    enrolled_at: int


class ShapeRow(NamedTuple):
    id: int
    digest: str
    body: bytes  # the shape as JSON


class QueueRow(NamedTuple):
    """A queue that operators have set something of; 0 stands for no limit."""

    name: str
    weight: int
    paused: int
    max_running: int = 0
    max_per_worker: int = 0
    preempts: int = 0  # its jobs may take the place of preemptible ones of lower queues
    limit: int = 0  # the row of `limits` that counts what runs of it


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
    """A worker that is kept for a job too large for what is free there."""

    worker: int
    job: int
    shape: int
    since: int


class KeyRow(NamedTuple):
    namespace: str
    key: str
    job: int
    digest: str


class CascadeKind(IntEnum):
    """What is to be done to the dependents of a job, to itself, or to those of a workflow."""

    SATISFY = 1
    ABORT = 2
    REVIVE = 3  # supersede what was aborted because of the job
    RELEASE = 4  # the job's own last condition was met, but its age must be set anew
    CANCEL = 5  # all open jobs of a workflow
    STOP = 6  # the same, because one of them failed
    RETRY = 7  # supersede what failed in a workflow
    INHERIT = 9  # rank those anew that some jobs wait for, whose numbers are the reason
    FAIL = 8  # abort the dependents of the job, and satisfy those that take any end


class Cascade(NamedTuple):
    """An intent to abort or revive the dependents of `job`, kept until it is done.

    Those about all jobs of a workflow have minus its number as `job`.
    """

    id: int
    job: int
    kind: int
    cursor: int  # chunks of dependents below this number, or jobs up to this id, are done
    reason: str | None


class WorkflowRow(NamedTuple):
    id: int
    namespace: str
    name: str
    state: int
    run: int
    flags: int
    created_at: int
    finished_at: int
    counts: tuple[int, ...]  # indexed by state code; element 0 counts forgiven failures


class WorkflowAbout(NamedTuple):
    """What a workflow was submitted with, which is only read when it is shown or joined."""

    workflow: int
    base: int  # the priority of jobs that have none of their own
    key: str | None
    reason: str | None  # why it was canceled
    body: bytes  # the rest, JSON: `domain.workflow.Details`


class Waited(NamedTuple):
    """A job that ended while it waited, and the state it was in until then."""

    job: int
    state: int
    shape: int
    workflow: int
    limit: int
    flags: int
    attempt: int


class Completed(NamedTuple):
    """A job that did its work, and what counts it."""

    job: int
    shape: int
    workflow: int


class Freed(NamedTuple):
    """Jobs whose last condition was met: those that are ready now, and those that are not yet."""

    ready: list[Ticket]
    others: list[Wait]


class Dependents(NamedTuple):
    """One chunk of the jobs that wait for `job`; an edge is dependent × 2 + any."""

    job: int
    chunk: int
    edges: tuple[int, ...]


# What is made for every job and only handed on is a plain tuple: a record costs three times
# as much, which counts where it happens for each of a hundred jobs at once.

# The fields of `NewJob`.
JobColumns: TypeAlias = tuple[
    int, int, int, int, int, int, int, int, int, int, int, int, int, bytes
]  # fmt: skip

# A ready job about to be leased: ticket, worker, incarnation, attempt.
Grant: TypeAlias = tuple[Ticket, int, int, int]

# A lease just made, with what the worker needs to run the job: job, attempt, lease, worker,
# timeout_ms, idle_ms, spec.
Granted: TypeAlias = tuple[int, int, int, int, int, int, bytes]
job_of_granted: Final[Callable[[Granted], int]] = itemgetter(0)
lease_of_granted: Final[Callable[[Granted], int]] = itemgetter(2)
worker_of_granted: Final[Callable[[Granted], int]] = itemgetter(3)

# A worker's word that an attempt did its work: job, attempt, worker, incarnation, exit code,
# result.
Completion: TypeAlias = tuple[int, int, int, int, int | None, bytes | None]
job_of_completion: Final[Callable[[Completion], int]] = itemgetter(0)
