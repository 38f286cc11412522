"""Messages about what workers and pools did over time, version 1."""

import msgspec


class WorkerSpell(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt on a worker, from assignment to end.

    Times are None if they are outside the part of the log that was read, or have not come. `job`
    and its description are None for a job that the caller may not see. `state` is where the job
    went: completed, failed, retrying, queued, suspended…; running or assigned while it lasts. Only
    the newest and the current attempts have a `name`.
    """

    attempt: int
    state: str
    assigned_at: str | None
    started_at: str | None
    finished_at: str | None
    job: int | None = None
    name: str | None = None
    task: str | None = None
    queue: str | None = None
    reason: str | None = None


class FleetChange(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a worker (enrolled, drained, lost…) or to a pool."""

    at: str
    what: str
    actor: str | None


class WorkerHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker did between two times.

    Attempts are ordered by start, changes newest first. With `more`, others before `complete_from`
    were left out.
    """

    begin: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    complete_from: str
    more: bool
    slots: int
    attempts: list[WorkerSpell]
    changes: list[FleetChange]


class PoolMachine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of a pool: when it was requested, when its worker enrolled, and its end.

    Times are None if they are outside the part of the log that was read, or have not come.
    """

    name: str
    state: str
    requested_at: str | None
    ready_at: str | None
    gone_at: str | None
    reason: str | None


class PoolSize(msgspec.Struct, frozen=True, kw_only=True):
    """How many machines a pool had from a time on: all of them, and those with a worker."""

    at: str
    machines: int
    ready: int


class PoolFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A pool over time, in slots of `step` seconds; None where nothing is known.

    `wanted` is the most it wanted in a slot, before limits, and `latency_seconds` the longest it
    expected; also None if no worker could run the work. Seconds and cost of machines are for the
    month so far, `budget_seconds` is the month's limit; None means no limit. `started` and `ended`
    count machines.
    """

    step: int
    times: list[int]
    machines: list[int | None]
    ready: list[int | None]
    wanted: list[int | None]
    most: list[int | None]
    latency_seconds: list[float | None]
    target_seconds: list[float | None]
    used_seconds: list[float | None]
    used_money: list[float | None]
    budget_seconds: list[float | None]
    started: list[int | None]
    ended: list[int | None]


class PoolReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pool did what it did, from a time on."""

    at: str
    reason: str


class PoolHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool did between two times.

    Machines are ordered by request, changes newest first. `sizes` begins with the size at `from`.
    With `more`, others before `complete_from` were left out. `reasons` come from the plan, newest
    first.
    """

    begin: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    complete_from: str
    more: bool
    figures: PoolFigures
    reasons: list[PoolReason]
    sizes: list[PoolSize]
    machines: list[PoolMachine]
    changes: list[FleetChange]
