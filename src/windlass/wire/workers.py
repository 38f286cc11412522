"""Messages about workers, version 1."""

from typing import Any

import msgspec


class EnrolRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker's process introduces itself.

    The first time with a single-use `code`, or without one to wait for approval; later
    with its own token. `takeover` means that it holds the lock of its state directory and
    has killed the process groups recorded there.
    """

    name: str
    slots: int = 1
    metadata: dict[str, Any] = {}
    takeover: bool = False
    replaces: int | None = None
    code: str | None = None


class EnrolReply(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's identity and the rules it must keep. `token` is sent only once."""

    worker: int
    incarnation: int
    status: str
    token: str | None = None
    heartbeat_interval_ms: int
    lease_ms: int
    term_grace_ms: int
    log_limit: int
    epoch: int = 0


class LeaveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker's process is exiting and holds no job."""

    incarnation: int


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


class QueueInfo(msgspec.Struct, frozen=True):
    name: str
    weight: int
    paused: bool
    depth: int
    max_running: int = 0
    max_per_worker: int = 0
    preempts: bool = False
    running: int | None = None  # counted where `max_running` is set


class QueueLimitsRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How many jobs of a queue may run; 0 means any number, a missing field stays unchanged."""

    max_running: int | None = None
    max_per_worker: int | None = None
    preempts: bool | None = None


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
