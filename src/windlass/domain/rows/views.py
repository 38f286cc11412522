"""How jobs and workers are shown: joined from the rows of several tables."""

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from windlass.domain.rows.records import JobFacts, JobRecord, Lease, Worker


class JobFilter(NamedTuple):
    """Which jobs a list shows; empty or None fields do not filter.

    `ids` names the jobs themselves. `states` and `failures` are codes. `current` leaves out jobs
    that a retry replaced. `dead` means failed for good, quarantined or not, and not retried since.
    Times are from `..._from` (inclusive) to before `..._to`. `text` and `pattern` (of RE2) are
    searched in the name, the command or function, and the reason of the end; `text` also matches
    the start of the id.
    """

    ids: tuple[int, ...] = ()
    states: tuple[int, ...] = ()
    namespaces: tuple[str, ...] | None = None
    queue: str | None = None
    task: str | None = None
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    workflow: int | None = None
    submitted_by: str | None = None
    key: str | None = None
    dead: bool = False
    current: bool = False
    created_from: int | None = None
    created_to: int | None = None
    finished_from: int | None = None
    finished_to: int | None = None
    failures: tuple[int, ...] = ()
    text: str | None = None
    pattern: str | None = None


class JobSort(StrEnum):
    """The orders of a list. A store reads each without sorting all jobs.

    `running` puts those that run longest first, `priority` those that workers take next, and
    `finished` those that ended last, as far back as the event log reaches.
    """

    NEWEST = "newest"
    OLDEST = "oldest"
    RUNNING = "running"
    PRIORITY = "priority"
    FINISHED = "finished"


class JobPage(NamedTuple):
    """Jobs, newest first. `next` is the cursor of the next page, 0 at the end.

    A page may hold fewer jobs than requested, or none, and still have a `next`, since a call reads
    a bounded number of rows. `looked` says how many rows it read.
    """

    jobs: list[JobRecord]
    next: int
    looked: int = 0


# Where a sorted list continues: the sort value, and a job.
Place: TypeAlias = tuple[int, int]


class SortedPage(NamedTuple):
    """Jobs in some order. `next` is None at the end; otherwise as in `JobPage`."""

    jobs: list[JobRecord]
    next: Place | None
    looked: int


class JobCount(NamedTuple):
    """How many jobs match a filter among the `looked` newest candidate rows.

    `is_whole` means that there are no further rows. Otherwise `estimate` is the expected total if
    the rest is like the rows we read; None without any basis.
    """

    found: int
    looked: int
    is_whole: bool
    estimate: int | None = None


class WorkerView(NamedTuple):
    """A worker and how many leases it holds."""

    worker: Worker
    leases: int


class Census(NamedTuple):
    """How many open jobs and workers there are, each list ascending.

    `jobs` counts those that are not queued, as (shape, state, jobs); `workers` is (status, workers,
    slots).
    """

    jobs: list[tuple[int, int, int]]
    workers: list[tuple[int, int, int]]


class ReadySpan(NamedTuple):
    """A part of a shape's queue: from one rank and job up to another."""

    shape: int
    since_rank: int
    since_job: int
    rank: int
    job: int


class WaitingJob(NamedTuple):
    """A ready job. It has waited since `since`; None if it was tried before."""

    job: int
    since: int | None
    spec: bytes


class JobMoment(NamedTuple):
    """Where a job stands, and when its newest attempt started and ended; for graphs and lanes.

    `manual` is the field of `Wait`, 0 if the job does not wait for others.
    """

    job: int
    state: int
    attempt: int
    worker: int | None
    manual: int
    unmet: int
    created_at: int
    started_at: int | None
    finished_at: int | None


# A worker and how many leases it holds, with only what `explain` needs, since there may be
# thousands: id, name, status, slots, held, reason, static, dynamic.
FleetRow: TypeAlias = tuple[int, str, int, int, int, str | None, str, str]


def newest_attempt(facts: JobFacts, lease: Lease | None) -> int:
    """Returns the number of the current attempt, else of the last one; 0 before the first."""
    return facts.attempt if lease is None else lease.attempt


def accepted_attempt(facts: JobFacts) -> int | None:
    """Returns the attempt whose outcome is the job's, if there is one."""
    return None if facts.worker is None else facts.attempt
