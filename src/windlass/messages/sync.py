"""The messages between worker and server, version 1: enrol, sync, leave.

Only durations are sent, never clock readings, so a worker whose clock is wrong does no harm.
"""

from typing import Any, Literal

import msgspec

from windlass.domain.lifecycle.failures import Raised
from windlass.domain.matching.isolation import Isolation

Outcome = Literal["completed", "failed", "canceled", "timed_out", "suspended"]


class Started(msgspec.Struct, frozen=True, gc=False):
    """A process is about to be launched for this attempt."""

    job: int
    attempt: int


class Finished(msgspec.Struct, frozen=True, gc=False):
    """An attempt ended on the worker, and its results are uploaded.

    `failure` names the class; without it, the text of `message` decides. A `misfit` means that the
    arguments were refused before the job ran: such a job is rejected. `raised` describes the
    exception that ended a function. `suspended`: its function waits for something it requested from
    the server. `own_limit`: the job passed a limit of its own, which says nothing about the worker.
    """

    job: int
    attempt: int
    outcome: Outcome = "completed"
    exit_code: int | None = None
    failure: str | None = None
    message: str | None = None
    result: Any = None
    misfit: bool = False
    raised: Raised | None = None
    own_limit: bool = False


class Released(msgspec.Struct, frozen=True, gc=False):
    """The worker gives this attempt back through no fault of the job.

    For an attempt that never started, a reason means a refusal: the job backs off and avoids this
    worker for a while. With `back_off` the next attempt waits, because it would fail too. An
    `unable` worker cannot run such jobs, and its metadata says so from this sync on.
    """

    job: int
    attempt: int
    reason: str | None = None
    back_off: bool = False
    unable: bool = False


class Held(msgspec.Struct, frozen=True, gc=False):
    """An attempt the agent believes it holds, so that the server can compare."""

    job: int
    attempt: int


class SyncRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Heartbeat, starts, results, claims and cancellations at once.

    `wait_ms` is how long the server may delay the answer, at most a heartbeat. `received` is the
    highest lease number the agent has seen. With `prefetch` jobs come as assigned and are launched
    only after `started` was answered. An agent is `stopping` once it takes no more jobs because its
    process is about to exit.
    """

    incarnation: int
    seq: int
    received: int = 0
    started: tuple[Started, ...] = ()
    finished: tuple[Finished, ...] = ()
    released: tuple[Released, ...] = ()
    want: int = 0
    wait_ms: int = 0
    prefetch: bool = False
    held: tuple[Held, ...] | None = None
    metadata: dict[str, Any] | None = None
    epoch: int = 0  # the newest epoch the agent has seen
    stopping: bool = False


class Assignment(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A job given to this incarnation, under a lease; `indices` are those it holds, by resource.

    `isolation` is the weakest mode that its queue allows. `handed_back` counts the earlier attempts
    that no worker started.
    """

    job: int
    attempt: int
    lease: int
    state: str
    timeout_ms: int | None
    idle_timeout_ms: int | None
    spec: msgspec.Raw
    indices: dict[str, tuple[str, ...]] | None = None
    isolation: Isolation | None = None
    handed_back: int = 0


class Stop(msgspec.Struct, frozen=True, gc=False):
    """A process the agent must stop; it keeps the lease until it reports."""

    job: int
    attempt: int
    reason: str


class StackWanted(msgspec.Struct, frozen=True, gc=False):
    """Somebody requested the stack of this attempt's function; `request` is returned with the
    answer.
    """

    job: int
    attempt: int
    request: int


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """`lease_lost`: the agent no longer holds this attempt and must kill its process."""

    job: int
    attempt: int
    reason: str


class SyncReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent must do.

    `applied` is False if the request reported something and changed nothing: all of it was already
    recorded, or refused. `stale` means that the request was ignored, because a newer one had come
    before it. A `pending` worker gets no jobs until an operator has approved it.
    """

    jobs: tuple[Assignment, ...] = ()
    cancel: tuple[Stop, ...] = ()
    lost: tuple[Refusal, ...] = ()
    drain: bool = False
    epoch: int = 0
    applied: bool = True
    stale: bool = False
    pending: bool = False
    stacks: tuple[StackWanted, ...] = ()


class Stopped(msgspec.Struct, frozen=True):
    """An incarnation that was asked to stop, and ended before it had reported everything.

    `finished` are its undelivered results; everything else that it holds is handed back.
    """

    incarnation: int
    finished: tuple[Finished, ...] = ()


class EnrolRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker's process introduces itself.

    The first time it sends a single-use `code`, or none and waits for approval; later its own
    secret. `takeover` means that it holds the lock of its state directory and has killed the
    process groups recorded there. `token` is the secret that it will enrol with from now on: it has
    stored it before it asks, so that it can ask again if the answer is lost. `stopped` tells how
    the last process of this worker ended. Both `takeover` and `stopped` count only with proof that
    it is that worker.
    """

    name: str
    slots: int = 1
    metadata: dict[str, Any] = {}
    takeover: bool = False
    replaces: int | None = None
    code: str | None = None
    token: str | None = None
    stopped: Stopped | None = None


class EnrolReply(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's identity and the rules it must follow. `token` belongs to this incarnation."""

    worker: int
    incarnation: int
    status: str
    token: str | None = None
    heartbeat_interval_ms: int
    lease_ms: int
    term_grace_ms: int
    log_limit: int
    epoch: int = 0
    drain_limit_ms: int = 60_000
    result_limit: int = 1024 * 1024


class LeaveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker's process is exiting and holds no job."""

    incarnation: int
