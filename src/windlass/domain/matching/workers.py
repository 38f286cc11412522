"""What a worker is to the scheduler: its status, and when it is trusted with jobs."""

import json
from enum import IntEnum
from typing import Final, NamedTuple

from windlass.domain.rows.records import Worker


class WorkerStatus(IntEnum):
    """The stored status. Idle and busy are both `ONLINE`: they follow from the leases."""

    ONLINE = 1
    DRAINING = 2
    UNHEALTHY = 3  # missed a heartbeat: no new jobs until it is heard again
    OFFLINE = 4  # lost: its leases have ended
    DISABLED = 5
    PENDING_APPROVAL = 6


class PastMetadata(NamedTuple):
    """What a worker reported of itself until some time, and no longer."""

    worker: int
    digest: str
    until: int
    dynamic: str  # JSON object


KEPT_METADATA: Final = 20  # the newest of each worker


CLAIMING: Final = frozenset({WorkerStatus.ONLINE, WorkerStatus.UNHEALTHY})
LEASED: Final = (WorkerStatus.ONLINE, WorkerStatus.DRAINING, WorkerStatus.UNHEALTHY)


def may_claim(status: int) -> bool:
    """Returns whether a sync of this worker may be given jobs; a sync heals `UNHEALTHY`."""
    return status in CLAIMING


def shown_status(worker: Worker, leases: int) -> str:
    """Returns the status as people read it."""
    if worker.status == WorkerStatus.ONLINE:
        return "busy" if leases else "idle"
    return WorkerStatus(worker.status).name.lower()


def note_trouble(worker: Worker, job: int, now: int, window_ms: int) -> tuple[str, int]:
    """Adds an infrastructure failure, and returns how many different jobs failed lately."""
    recent = [(at, j) for at, j in json.loads(worker.troubles or "[]") if now - at < window_ms]
    recent = [(at, j) for at, j in recent if j != job] + [(now, job)]
    return json.dumps(recent), len(recent)
