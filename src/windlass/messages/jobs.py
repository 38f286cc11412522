"""Messages about jobs, one or many, version 1: the names users and scripts build on.

Durations are seconds or text such as "15m"; times are RFC 3339 in UTC.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from windlass.domain.explain.explanation import Estimate
from windlass.domain.job.forms import Backoff, Concurrency, Duration, RateLimit
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import ExceptionInfo, TimeoutFrom
from windlass.domain.values.ids import Cursor, Id, Moment
from windlass.messages.files import ArtifactInfo, LogInfo


class NewWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workflow that a submission makes.

    `priority` is the base of its jobs that name none. While another workflow holds this `key`, the
    answer is that one instead of a new one: until it ends, or as long as its `key_for` says, a
    duration or “forever”. `template` is “name@version”. `messages/reactions.py` has the form of
    reactions. `outputs` are results of its jobs, by name: `{"version": {"$result": {"job": "plan",
    "output": "version"}}}`.
    """

    name: str
    namespace: str | None = None
    priority: int | str | None = None
    key: str | None = None
    key_for: Duration | None = None
    fail_fast: bool = False
    labels: dict[str, str] = {}
    template: str | None = None
    parameters: dict[str, Any] = {}
    on_success: list[dict[str, Any]] = []
    on_failure: list[dict[str, Any]] = []
    on_end: list[dict[str, Any]] = []
    outputs: dict[str, Any] = {}


class SubmitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of these jobs, or none.

    `key` names the submission: if sent again, it gets the same answer and nothing is repeated. With
    `reopen`, jobs may be added to workflows that have ended.
    """

    jobs: list[JobSpec]
    workflow: NewWorkflow | None = None
    key: str | None = None
    reopen: bool = False


class SubmitReply(msgspec.Struct, frozen=True):
    """Ids in the order of the jobs; `applied` is False where a key was known.

    No job of them was made after `at` (in ms, 0: unknown). One that was has got its id after the
    database had lost theirs.
    """

    ids: list[int]
    applied: list[bool]
    workflow: int | None = None
    at: int = 0


class Priority(msgspec.Struct, frozen=True):
    """`inherited` are the levels that the job gains from jobs that wait for it."""

    base: int
    adjustment: int
    effective: int
    inherited: float = 0.0


class FailureInfo(msgspec.Struct, frozen=True):
    """The class is named `class` in JSON. `exception` is what ended the function of the job."""

    kind: str = msgspec.field(name="class")
    message: str | None = None
    exception: ExceptionInfo | None = None


class AttemptInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt; one that was handed back unstarted has the number of the next one."""

    number: int
    worker: str | None
    state: str
    failure: FailureInfo | None
    assigned_at: str | None
    started_at: str | None
    finished_at: str | None
    exit_code: int | None
    handed_back: bool = False


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    at: str
    source: str | None = msgspec.field(name="from")
    to: str
    attempt: int
    worker: str | None
    reason: str | None
    actor: str | None


class LinkedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that another waits for, or that waits for it.

    With `any_end`, any end of the dependency is enough. If it was retried, `superseded_by` is the
    job that replaced it.
    """

    job: int
    state: str
    any_end: bool = False
    superseded_by: int | None = None


class RunStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of completed jobs of this kind: run times in seconds, and bytes if measured."""

    kind: str = ""  # a function, or a program and its first argument
    count: int
    mean: float
    p50: float
    p90: float
    peak_memory: int | None = None


class StepInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a job for display; `attempt` is the one that stored it or requested it last."""

    key: str
    kind: str
    state: str
    attempt: int
    asked_at: str
    until: str | None = None
    ended_at: str | None = None
    name: str | None = None
    question: str | None = None
    actor: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job for display.

    `after` and `after_any` name what it waits for now: if a dependency was retried, its successor.
    `dependencies` and `dependents` list all of them, including superseded ones. Lists leave these
    two, `attempts`, `transitions` and `artifacts` empty.
    """

    id: int
    namespace: str
    workflow: int | None
    name: str | None
    task: str
    args: Any
    queue: str
    state: str
    priority: Priority
    requires: list[str]
    resources: dict[str, int]
    secrets: list[str]  # their names; only the worker knows the values
    after: list[int]
    after_any: list[int]
    allow_failure: bool
    unblock: str
    attempt: int
    attempts: list[AttemptInfo]
    retry_count: int
    retries: int | None  # as submitted
    max_retries: int
    retry_on: list[str]
    no_retry_on: list[str]
    backoff: Backoff | None
    lost_count: int
    not_before: str | None
    start_before: str | None
    finish_before: str | None
    capability_grace: float | str | None
    prefers: list[str]
    apart: str | None
    rate: RateLimit | None
    concurrency: Concurrency | None
    preemptible: bool
    timeout: float | None
    timeout_from: TimeoutFrom | None  # None: it has none, since an idle timeout ends it
    timeout_at: str | None
    idle_timeout: float | None
    last_activity_at: str | None
    transitions: list[Transition]
    dynamic: dict[str, Any] | None
    quarantined: bool
    result: Any
    exit_code: int | None
    failure: FailureInfo | None
    progress: Any
    log: LogInfo
    artifacts: list[ArtifactInfo]
    supersedes: int | None
    superseded_by: int | None
    labels: dict[str, str]
    key: str | None
    key_for: Duration | None
    submitted_by: str | None
    created_at: str
    assigned_at: str | None
    started_at: str | None
    finished_at: str | None
    reason: str | None
    worker: str | None
    indices: dict[str, tuple[str, ...]] = {}  # the indexed resources that it holds while it runs
    # Its forecast, and usual times of such jobs; in lists only on request (`estimates`).
    estimated_start: Estimate | None = None
    estimated_end: Estimate | None = None
    overdue: float | None = None  # seconds that it has run longer than 90 % of such jobs
    peak_memory: int | None = None  # maximum bytes that its newest attempt used
    statistics: RunStatistics | None = None  # None: no such job has completed
    suggestions: list[str] = []  # if it asks for far more, or less, than such jobs used
    dependencies: list[LinkedJob] = []
    dependents: list[LinkedJob] = []  # the first 100
    dependents_more: bool = False
    steps: list[StepInfo] = []  # what its function has stored and waits for; empty in lists
    options: dict[str, str] = {}  # all options that it was submitted with, as flags take them


class Where(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filters for lists of jobs, and for actions on many jobs at once.

    `id` names up to 1,000 jobs; the other filters choose among them.
    """

    id: list[Id] = []
    state: list[str] = []
    queue: str | None = None
    namespace: str | None = None
    task: str | None = None
    name: str | None = None
    label: list[str] = []
    workflow: Id | None = None
    submitted_by: str | None = None
    dead: bool = False
    failure: list[str] = []
    text: str | None = None
    regex: str | None = None
    created_from: str | None = None
    created_to: str | None = None
    finished_from: str | None = None
    finished_to: str | None = None


JOB_FILTERS: Final = (*Where.__struct_fields__, "key", "sort")  # of a list of jobs


class JobList(msgspec.Struct, frozen=True):
    """One page; `next` is the cursor of the following one.

    A call reads a bounded number of rows, given in `looked`. A page may therefore be short, or
    empty, and still have a `next`.
    """

    jobs: list[Job]
    next: str | None = None
    looked: int = 0
    as_of: str | None = None  # the moment that it shows


class JobCount(msgspec.Struct, frozen=True):
    """How many jobs match a filter.

    With `exact`, `count` is the total. Otherwise it is the number among the `looked` newest rows, a
    lower bound, and `estimate`, if given, is the expected total if the rest is like those rows.
    """

    count: int
    exact: bool
    looked: int
    estimate: int | None = None


class WaitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waits at most `timeout` seconds until one of these jobs has ended.

    `until` can be `all`: when all have ended; or `failure`: also at the first that did not
    complete. `given_at` is as in `CancelRequest`.
    """

    ids: list[Id]
    timeout: Annotated[float, msgspec.Meta(ge=0, le=60)] = 30
    until: Literal["any", "all", "failure"] = "any"
    given_at: list[Moment] = []


class WaitReply(msgspec.Struct, frozen=True):
    """Those that have ended, as lists show them, at most 1000; `more` counts further ended ones."""

    jobs: list[Job]
    more: int = 0


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`given_at` may say for each id when it was given (in ms, 0: unknown): one that has stood for
    another job since then is refused as lost.
    """

    ids: list[Id] = []
    given_at: list[Moment] = []
    reason: str = "Canceled"


class CanceledJob(msgspec.Struct, frozen=True):
    id: int
    state: str | None
    applied: bool


class CancelReply(msgspec.Struct, frozen=True):
    jobs: list[CanceledJob]


class DeleteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`given_at` is as in `CancelRequest`."""

    ids: list[Id] = []
    given_at: list[Moment] = []


class DeletedJob(msgspec.Struct, frozen=True):
    """`applied` is False if it no longer existed, or if there is a `refusal`."""

    id: int
    applied: bool
    refusal: str | None = None


class DeleteReply(msgspec.Struct, frozen=True):
    jobs: list[DeletedJob]


class RetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retries a job with other arguments; they may name no other jobs or uploads than before."""

    args: Any


class ChainJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a chain in which each supersedes the one before."""

    id: int
    state: str
    attempts: int
    created_at: str
    finished_at: str | None


class JobChain(msgspec.Struct, frozen=True):
    """A job with those it supersedes and those that supersede it, the oldest first.

    `more` says that the chain continues beyond what is shown.
    """

    jobs: list[ChainJob]
    more: bool = False


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """How to run a job again by hand. It contains no secrets, only their names.

    `command` and `python` submit it again; `call` runs its function locally, and `program` is what
    the worker started. `fetch` gets the files that it read. `isolation` is the mode that its worker
    ran it in; None if the worker was restarted since.
    """

    job: int
    attempt: int
    command: str
    python: str
    call: str | None
    program: str | None
    fetch: list[str]
    env: dict[str, str]
    secrets: list[str]
    worker: str | None
    isolation: str | None


class RetryReply(msgspec.Struct, frozen=True):
    """The job that replaced the old one; `at` is as in `SubmitReply`."""

    id: int
    applied: bool
    at: int = 0


class UnblockRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    accept: bool = True
    reason: str = "Rejected"


class PriorityRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    adjustment: int


class PriorityReply(msgspec.Struct, frozen=True, kw_only=True):
    base: int
    adjustment: int
    effective: int
    score: float
    inherited: float
    applied: bool


Action = Literal["cancel", "retry", "prioritize"]


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Applies an action to the next jobs that match `where`, from the cursor `after` on.

    `where` needs at least one filter. Without `state` it applies to the jobs that the action can
    change: open jobs, or failed ones to retry. `dry_run` only counts them. If the reply has `next`,
    send it as `after` to continue. `at_most` bounds how many jobs this call changes.
    """

    action: Action
    where: Where
    reason: str = "Canceled"
    adjustment: int | None = None
    dry_run: bool = False
    after: Cursor = 0
    at_most: Id | None = None


class RefusedJob(msgspec.Struct, frozen=True):
    id: int
    reason: str


class BulkReply(msgspec.Struct, frozen=True, kw_only=True):
    """What one call did; `refused` lists the first few of `refusals`."""

    matched: int
    applied: int
    refusals: int = 0
    refused: list[RefusedJob] = []
    next: int | None = None


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks how many jobs an action on `where` would change."""

    action: Action
    where: Where


class PreviewReply(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs an action would change, and how certain that is: see `JobCount`.

    Only jobs that the action can change are counted; `only_own` means that the caller may change
    only its own submissions. To change what was counted, send `where` and `after` with the action:
    they leave out other jobs, and those submitted since.
    """

    count: int
    exact: bool
    looked: int
    estimate: int | None = None
    only_own: bool = False
    where: Where = Where()
    after: Cursor = 0
