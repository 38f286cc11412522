"""Messages with which a worker enrols and leaves, version 1."""

from typing import Any

import msgspec

from windlass.messages.sync import Finished


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
