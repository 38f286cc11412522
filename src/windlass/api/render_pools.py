"""Renders pools, plans and costs."""

from collections.abc import Iterable

from windlass.domain.pools.pools import (
    MICROS,
    CostRow,
    Lifecycle,
    PoolState,
    PoolWorkerRow,
    describe_pool,
)
from windlass.domain.pools.scale import Target
from windlass.domain.pools.sizing import Fleet, Verdict, latency_ms
from windlass.domain.values.quantities import format_moment
from windlass.engine.pools.pools import PlannedPools, PoolView
from windlass.wire.pools import (
    Plan,
    PlanTarget,
    PoolCost,
    PoolInfo,
    PoolPlan,
    PoolWorker,
)


def show_pool(shown: PoolView, now: int, options: bool) -> PoolInfo:
    """Renders a pool with its workers, with or without the `options` of its provider."""
    row = shown.row
    description = describe_pool(shown.pool)
    if not options:
        description["options"] = {}
    state = "deleting" if row.state == PoolState.DELETING else "active"
    return PoolInfo(
        name=row.name,
        state=state if shown.pool.enabled or state == "deleting" else "disabled",
        description=description,
        workers=[_show_worker(member, now) for member in shown.workers],
        seconds_this_month=sum(cost.ms for cost in shown.costs) / 1000,
        money_this_month=_money(sum(cost.micros for cost in shown.costs)),
        failures=row.failures,
        message=row.message,
        next_try_at=format_moment(row.next_at) if row.next_at > now else None,
        created_at=format_moment(row.created_at),
        created_by=row.created_by,
        updated_at=format_moment(row.updated_at),
    )


def _show_worker(member: PoolWorkerRow, now: int) -> PoolWorker:
    idle = None if member.idle_since is None else (now - member.idle_since) / 1000
    return PoolWorker(
        name=member.token,
        state=Lifecycle(member.state).name.lower(),
        worker=member.known_worker,
        machine=member.machine,
        since=format_moment(member.changed_at),
        idle_seconds=idle,
        reason=member.reason,
    )


def show_costs(costs: Iterable[CostRow]) -> list[PoolCost]:
    """Renders costs in seconds and money."""
    return [
        PoolCost(
            pool=row.pool,
            namespace=row.namespace,
            queue=row.queue,
            seconds=row.ms / 1000,
            money=_money(row.micros),
        )
        for row in costs
    ]


def show_plan(planned: PlannedPools, named: bool) -> Plan:
    """Renders what pools would do; names the jobs only if the caller may see them (`named`)."""
    messages = {one.pool.name: one for one in planned.fleet.pools}
    return Plan(
        pools=[
            _show_verdict(verdict, messages[verdict.pool].serving, messages[verdict.pool].message)
            for verdict in planned.verdicts
        ],
        targets=[_show_target(target, planned.fleet, named) for target in planned.fleet.targets],
        useless=list(planned.useless),
    )


def _show_verdict(verdict: Verdict, workers: int, message: str | None) -> PoolPlan:
    return PoolPlan(
        pool=verdict.pool,
        start=verdict.start,
        wanted=verdict.wanted,
        workers=workers,
        work_seconds=verdict.work_ms / 1000,
        jobs=verdict.jobs,
        slots=verdict.slots,
        latency_seconds=_latency(verdict.latency_ms),
        target_seconds=verdict.target_ms / 1000,
        latency_after_seconds=_latency(verdict.after_ms),
        reason=verdict.reason,
        message=message,
    )


def _show_target(target: Target, fleet: Fleet, named: bool) -> PlanTarget:
    slots = sum(host.workers * target.hosts.get(host.id, 0) for host in fleet.hosts)
    return PlanTarget(
        jobs=target.label if named else "jobs",
        queued=target.queued,
        queued_seconds=target.queued_ms / 1000,
        running=target.running,
        running_seconds=target.running_ms / 1000,
        slots=slots,
        latency_seconds=_latency(latency_ms(target.work_ms, slots)),
        pools=sorted({*target.pools, *target.guesses}),
        more=target.more,
        obstacle=target.obstacle if named else "",
        shapes=list(target.shapes) if named else [],
    )


def _latency(ms: int) -> float | None:
    return None if ms < 0 else ms / 1000


def _money(micros: int) -> float:
    return micros / MICROS
