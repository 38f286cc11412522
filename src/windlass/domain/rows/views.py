"""How jobs and workers are shown: joined from the rows of several tables."""

from typing import NamedTuple, TypeAlias

from windlass.domain.rows.records import JobFacts, JobRecord, Lease, Worker


class JobFilter(NamedTuple):
    """Which jobs a list shows; empty or None fields do not filter.

    `states` are codes. `current` leaves out jobs that a retry took the place of. `dead` means
    failed for good, quarantined or not, and not retried since.
    """

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


class JobPage(NamedTuple):
    """Jobs, newest first. `next` is the cursor of the next page, 0 at the end.

    A page may hold fewer jobs than asked for, or none, and still have a `next`, since a call
    reads a bounded number of rows.
    """

    jobs: list[JobRecord]
    next: int


class WorkerView(NamedTuple):
    """A worker and how many leases it holds."""

    worker: Worker
    leases: int


class WaitingJob(NamedTuple):
    """A ready job. It waits since `since`, unless it was tried before: then that is None."""

    job: int
    since: int | None
    spec: bytes


class JobMoment(NamedTuple):
    """Where a job stands, and when its newest attempt started and ended; for graphs and lanes.

    `manual` is that of `Wait`, 0 if the job does not wait for others.
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


# A worker and how many leases it holds, with only what `explain` needs, since there may be very
# many: id, name, status, slots, held, reason, static, dynamic.
FleetRow: TypeAlias = tuple[int, str, int, int, int, str | None, str, str]


def newest_attempt(facts: JobFacts, lease: Lease | None) -> int:
    """Returns the number of the current attempt, else of the last one; 0 before the first."""
    return facts.attempt if lease is None else lease.attempt


def accepted_attempt(facts: JobFacts) -> int | None:
    """Returns the attempt whose outcome is the job's, if there is one."""
    return None if facts.worker is None else facts.attempt
