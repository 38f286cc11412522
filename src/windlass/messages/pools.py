"""Messages about pools, version 1."""

from typing import Any

import msgspec


class PoolWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of a pool; `worker` is the worker's id."""

    name: str
    state: str
    worker: int
    machine: str | None
    since: str
    idle_seconds: float | None
    reason: str | None


class PoolCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a month; an entry without namespace and queue is idle time."""

    pool: str
    namespace: str
    queue: str
    seconds: float
    money: float


class PoolInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: its description and its current state."""

    name: str
    state: str
    description: dict[str, Any]
    workers: list[PoolWorker]
    seconds_this_month: float
    money_this_month: float
    failures: int
    message: str | None
    next_try_at: str | None
    created_at: str
    created_by: str | None
    updated_at: str


class PoolList(msgspec.Struct, frozen=True):
    pools: list[PoolInfo]


class PoolApplied(msgspec.Struct, frozen=True, kw_only=True):
    """`applied` is False if nothing changed."""

    applied: bool
    pool: PoolInfo


class CostList(msgspec.Struct, frozen=True, kw_only=True):
    month: str
    costs: list[PoolCost]


class PlanTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Work that the same workers and pools can run, and how long it would take.

    `slots` is how many of these jobs fit at once, by slots and resources of the workers. With
    `more`, further queued jobs were not counted. `obstacle` says why no worker can run it. `shapes`
    are the numbers to filter its jobs by.
    """

    jobs: str
    queued: int
    queued_seconds: float
    running: int
    running_seconds: float
    slots: int
    latency_seconds: float | None
    pools: list[str]
    more: bool = False
    obstacle: str = ""
    shapes: list[int] = []


class PoolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool would do now, with the numbers of the formula.

    `latency_seconds` is `work_seconds` over `slots`; None if no slot can run the work.
    """

    pool: str
    start: int
    wanted: int
    workers: int
    work_seconds: float
    jobs: int
    slots: int
    latency_seconds: float | None
    target_seconds: float
    latency_after_seconds: float | None
    reason: str
    message: str | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`useless` lists pools that no waiting job can use."""

    pools: list[PoolPlan]
    targets: list[PlanTarget]
    useless: list[str]
