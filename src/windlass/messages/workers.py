"""Messages about workers and what they serve: namespaces and queues, version 1."""

from typing import Any, Literal

import msgspec


class IndexedResource(msgspec.Struct, frozen=True):
    """Which indices of a resource are held, each by a job, and which are free."""

    held: dict[str, int]
    free: list[str]


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it is shown."""

    id: int
    name: str
    status: str
    incarnation: int
    slots: int
    held: int
    last_seen: str
    enrolled_at: str
    reason: str | None
    static: dict[str, Any]
    dynamic: dict[str, Any]
    metadata: dict[str, Any]
    indices: dict[str, IndexedResource] = {}  # by resource


class WorkerList(msgspec.Struct, frozen=True):
    workers: list[WorkerInfo]


class QueueRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate under which jobs of a queue wait: `used` of `max` starts in the last `seconds`.

    `next_at` is when the next one may start; None: now.
    """

    namespace: str
    key: str
    max: int
    seconds: float
    used: int
    next_at: str | None


class QueueInfo(msgspec.Struct, frozen=True):
    name: str
    weight: int
    paused: bool
    depth: int
    max_running: int = 0
    max_per_worker: int = 0
    preempts: bool = False
    running: int | None = None  # None: an older server, which counts under `max_running` only
    isolation: str | None = None  # the weakest mode its jobs may run in
    rates: list[QueueRate] = []  # of the waiting jobs that the caller can see
    timeout: float | Literal["none"] | None = None  # seconds, for jobs without their own


class QueueLimits(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How many jobs of a queue may run; 0 means any number, a missing field stays unchanged.

    `preempts` says whether its jobs may preempt jobs of lower queues. `isolation` is the weakest
    mode its jobs may run in. `timeout` is for jobs that are submitted from now on and have none:
    seconds, text such as 6h, `none`, or `default` for the server's.
    """

    max_running: int | None = None
    max_per_worker: int | None = None
    preempts: bool | None = None
    isolation: str | None = None
    timeout: float | str | None = None


class WeightRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    weight: int


class NamespaceInfo(msgspec.Struct, frozen=True):
    name: str
    weight: int


class NamespaceWeights(msgspec.Struct, frozen=True):
    namespaces: list[NamespaceInfo]


class QueueList(msgspec.Struct, frozen=True):
    queues: list[QueueInfo]


class Changed(msgspec.Struct, frozen=True):
    """Whether the call changed anything; a repeated call does not."""

    applied: bool


class FleetWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as a grid shows it. `kind` is its pool, or its system and architecture."""

    id: int
    name: str
    status: str
    kind: str
    pool: str | None
    slots: int
    held: int
    reason: str | None


class FleetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Workers by name, one page; `next` is the `after` of the next page.

    `statuses` counts all workers that match the other filters, `kinds` those of each kind by
    status, regardless of the filters on state and kind.
    """

    workers: list[FleetWorker]
    total: int
    statuses: dict[str, int]
    kinds: dict[str, dict[str, int]]
    next: str | None = None


class NamespaceLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace: the jobs that workers hold, and those a worker could take now.

    With `more`, the number of ready jobs is a lower bound. `weight` is None for callers who may not
    set it.
    """

    name: str
    running: int
    ready: int
    more: bool = False
    weight: int | None = None


class NamespaceLoads(msgspec.Struct, frozen=True):
    namespaces: list[NamespaceLoad]
