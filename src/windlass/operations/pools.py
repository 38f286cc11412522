"""Pools: what can be done with them, and how they are shown."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Literal

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.pools.pools import (
    MAX_WORKERS,
    MICROS,
    CostRow,
    Lifecycle,
    PoolState,
    PoolWorkerRow,
    describe_pool,
)
from windlass.domain.pools.scale import Target
from windlass.domain.pools.sizing import Fleet, Verdict, latency_ms
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.ids import Id
from windlass.domain.values.quantities import format_moment, month_of, parse_duration_ms
from windlass.engine.pools.pools import PlannedPools, PoolView
from windlass.messages.jobs import JobList
from windlass.messages.pools import (
    CostList,
    Plan,
    PlanTarget,
    PoolApplied,
    PoolCost,
    PoolInfo,
    PoolList,
    PoolPlan,
    PoolWorker,
)
from windlass.messages.workers import Changed
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.services import Services
from windlass.store.sql.transaction import ReadTx

SHAPE_LIMIT: Final = 200
JOB_LIMIT: Final = 200  # jobs that one answer shows

routes = Routes("/api/v1/pools", "pools")


@routes.get("", needs=Action.READ_FLEET)
async def list_pools(call: Call) -> PoolList:
    """Returns all pools with their workers."""
    return PoolList(await _pools(call.services, call.who))


@routes.get("/plan", needs=Action.READ_FLEET, costly=True)
async def plan(call: Call, workers: int | None = None, target: str | None = None) -> Plan:
    """Shows what the pools would do and why: now, with `workers` workers, or for another target."""
    if workers is not None and not 0 <= workers <= MAX_WORKERS:
        raise InvalidInput("workers", f"from 0 to {MAX_WORKERS}", workers)
    target_ms = None if target is None else parse_duration_ms(target, "target")
    if target_ms == 0:
        raise InvalidInput("target", "more than 0", target)
    named = may(call.who, Action.READ_FLEET, FLEET)
    return show_plan(await call.services.pools.plan(workers, target_ms), named)


@routes.get("/plan/jobs", needs=Action.READ_JOBS)
async def plan_jobs(
    call: Call, shape: list[Id], state: Literal["queued", "running"] = "queued"
) -> JobList:
    """Returns jobs that a plan counts, by the shapes it names: the first that wait, or that run."""
    if len(shape) > SHAPE_LIMIT:
        raise InvalidInput("shape", f"at most {SHAPE_LIMIT} at once", len(shape))
    find = ready_jobs if state == "queued" else held_jobs
    ids = await call.services.engine.store.read(lambda tx: find(tx, shape, JOB_LIMIT))
    shown = await call.services.queries.some_jobs(ids, call.who)
    # How many were looked at would tell how many jobs other namespaces have.
    return JobList(shown, None, len(shown))


@routes.get("/costs", needs=Action.READ_FLEET)
async def costs(call: Call, month: str | None = None) -> CostList:
    """Returns what a month (2026-11) has cost so far, by pool, namespace and queue."""
    number = _month(month) if month else month_of(await call.services.engine.now())
    found = await call.services.pools.costs(number)
    rows = [row for row in found if sees(call.who, row.namespace, Action.READ_FLEET)]
    return CostList(month=f"{number // 100:04d}-{number % 100:02d}", costs=show_costs(rows))


@routes.get("/{name:str}", needs=Action.READ_FLEET)
async def show(call: Call, name: str) -> PoolInfo:
    """Returns one pool."""
    return await _pool(call.services, name, call.who)


@routes.put("/{name:str}", needs=Action.MANAGE_POOLS)
async def apply(call: Call, name: str, data: Body[dict[str, Any]]) -> PoolApplied:
    """Creates or changes a pool. Its options may name programs that the server runs."""
    if data.get("name", name) != name:
        raise InvalidInput("name", f"the one in the address ({name})", data["name"])
    _, applied = await call.services.pools.apply({**data, "name": name}, call.who.name)
    return PoolApplied(applied=applied, pool=await _pool(call.services, name, call.who))


@routes.delete("/{name:str}", needs=Action.MANAGE_POOLS)
async def remove(call: Call, name: str) -> Changed:
    """Deletes a pool: drains it, and deletes it when its workers are gone."""
    return Changed(await call.services.pools.delete(name, call.who.name))


async def _pools(services: Services, who: Identity) -> list[PoolInfo]:
    """Returns the pools; only admins of all namespaces see the providers' options, which may hold
    secrets."""
    now = await services.engine.now()
    shown = await services.pools.all()
    return [show_pool(one, now, may(who, Action.MANAGE_POOLS)) for one in shown]


async def _pool(services: Services, name: str, who: Identity) -> PoolInfo:
    now = await services.engine.now()
    shown = await services.pools.one(name)
    return show_pool(shown, now, may(who, Action.MANAGE_POOLS))


def _month(text: str) -> int:
    year, dash, month = text.partition("-")
    if len(text) != 7 or not dash or not (year + month).isdigit() or not 1 <= int(month) <= 12:
        raise InvalidInput("month", "a month such as 2026-11", text)
    return int(year) * 100 + int(month)


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


async def ready_jobs(tx: ReadTx, shapes: Sequence[int], limit: int) -> list[int]:
    """Returns the first ready jobs of these shapes; those of one shape as workers take them."""
    found: list[int] = []
    for shape in shapes:
        if len(found) >= limit:
            break
        sample = await tx.views.ready_sample(shape, limit)
        found += [waiting.job for waiting in sample]
    return found[:limit]


async def held_jobs(tx: ReadTx, shapes: Collection[int], limit: int) -> list[int]:
    """Returns the jobs of these shapes that workers hold, by number."""
    load = await tx.pools.load(1)
    return sorted(held.job for held in load.leases if held.shape in shapes)[:limit]
