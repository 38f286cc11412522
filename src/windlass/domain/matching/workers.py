"""The status of a worker, and whether it may be given jobs."""

import json
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


class PastMetadata(NamedTuple):
    """What a worker reported until some time, and then no more."""

    worker: int
    digest: str
    until: int
    dynamic: str  # JSON object


KEPT_METADATA: Final = 20  # the newest of each worker


CLAIMING: Final = frozenset({WorkerStatus.ONLINE, WorkerStatus.UNHEALTHY})
LEASED: Final = (WorkerStatus.ONLINE, WorkerStatus.DRAINING, WorkerStatus.UNHEALTHY)


def may_claim(status: int) -> bool:
    """Returns True if a sync of this worker may get jobs; a sync heals `UNHEALTHY`."""
    return status in CLAIMING


def shown_status(worker: Worker, leases: int) -> str:
    """Returns the status as people read it."""
    if worker.status == WorkerStatus.ONLINE:
        return "busy" if leases else "idle"
    return WorkerStatus(worker.status).name.lower()


def note_trouble(worker: Worker, job: int, now: int, window_ms: int) -> tuple[str, int]:
    """Records an infrastructure failure; returns how many different jobs had one lately."""
    recent = [(at, j) for at, j in json.loads(worker.troubles or "[]") if now - at < window_ms]
    recent = [(at, j) for at, j in recent if j != job] + [(now, job)]
    return json.dumps(recent), len(recent)
