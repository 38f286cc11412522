"""The status of a worker, and whether it may be given jobs."""

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from windlass.domain.rows.records import Worker


class WorkerStatus(IntEnum):
    """The stored status. Idle and busy are both `ONLINE`; the leases tell them apart."""

    ONLINE = 1
    DRAINING = 2
    UNHEALTHY = 3  # missed a heartbeat: gets no new jobs until it syncs again
    OFFLINE = 4  # lost: its leases have ended
    DISABLED = 5
    PENDING_APPROVAL = 6
    PROBATION = 7  # suspected: gets one job at a time (`probation.py`)


class PastMetadata(NamedTuple):
    """What a worker reported until some time, and no longer does."""

    worker: int
    digest: str
    until: int
    dynamic: str  # JSON object


KEPT_METADATA: Final = 20  # the newest of each worker
KEPT_NAMES: Final = 100_000  # ids of removed workers whose names are kept


STOPPED: Final = "stopped"  # the reason of an offline worker whose process said that it is exiting
# suffix of the reason of an offline worker that was drained
WHILE_DRAINING: Final = " while draining"

LEAVING: Final = "its process is stopping"  # the reason of a worker that drains on its own

CLAIMING: Final = frozenset({WorkerStatus.ONLINE, WorkerStatus.UNHEALTHY, WorkerStatus.PROBATION})
KEPT: Final = (WorkerStatus.DISABLED, WorkerStatus.DRAINING, WorkerStatus.PENDING_APPROVAL)
LEASED: Final = (
    WorkerStatus.ONLINE, WorkerStatus.DRAINING, WorkerStatus.UNHEALTHY, WorkerStatus.PROBATION
)  # fmt: skip


def asked_from(source: str) -> str:
    """Returns the reason of a worker that waits for approval: the source of its request."""
    return f"asked from {source or 'this machine'}"


def gives_way(pending: Sequence[Worker], reason: str, heard_since: int) -> Worker | None:
    """Returns which waiting worker makes room for one more, if any.

    `reason` is the new worker's. The source with most places gives one to a source with at least
    two fewer, so one address cannot keep the others out, and two do not evict each other in turns.
    A worker that was not heard from since `heard_since` gives way to any source with as many.
    """
    held = Counter(worker.reason for worker in pending)

    def may_go(worker: Worker) -> bool:
        ahead = held[worker.reason] - held[reason]
        return ahead > 1 or (ahead >= 0 and worker.last_seen < heard_since)

    going = [worker for worker in pending if may_go(worker)]
    return max(going, key=lambda one: (held[one.reason], -one.last_seen, -one.id), default=None)


def may_claim(status: int) -> bool:
    """Returns True if a sync of this worker may get jobs; a sync heals `UNHEALTHY`."""
    return status in CLAIMING


def in_good_standing(status: int) -> bool:
    """Returns True if it may claim as many jobs as it has room for."""
    return may_claim(status) and status != WorkerStatus.PROBATION


def offline(worker: Worker, reason: str) -> Worker:
    """Returns the worker after it stopped or was lost; remembers that it was drained."""
    if worker.status == WorkerStatus.DRAINING and worker.reason != LEAVING:
        reason += WHILE_DRAINING
    return worker._replace(status=int(WorkerStatus.OFFLINE), reason=reason)


def status_after_enrolment(worker: Worker, approved: bool) -> WorkerStatus:
    """Returns the status with which a known worker restarts: what operators set stays.

    What its last process said about itself is dropped.

    A worker that waits for approval is `approved` if it enrols with a code.
    """
    status = WorkerStatus(worker.status)
    if worker.reason == LEAVING:
        return WorkerStatus.ONLINE
    if status in KEPT and not (approved and status is WorkerStatus.PENDING_APPROVAL):
        return status
    was_drained = (worker.reason or "").endswith(WHILE_DRAINING)
    if status is WorkerStatus.OFFLINE and was_drained:
        return WorkerStatus.DRAINING
    return WorkerStatus.ONLINE


def shown_status(worker: Worker, leases: int) -> str:
    """Returns the status as people read it."""
    if worker.status == WorkerStatus.ONLINE:
        return "busy" if leases else "idle"
    return WorkerStatus(worker.status).name.lower()
