"""Routes about pools."""

from typing import Any, Final, Literal

from windlass.api.fleet.work import held_jobs, ready_jobs
from windlass.api.render_pools import show_costs, show_plan, show_pool
from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.pools.pools import MAX_WORKERS
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import month_of, parse_duration_ms
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.services import Services
from windlass.wire.jobs import JobList
from windlass.wire.numbers import Id
from windlass.wire.pools import CostList, Plan, PoolApplied, PoolInfo, PoolList
from windlass.wire.workers import Changed

SHAPE_LIMIT: Final = 200
JOB_LIMIT: Final = 200  # jobs that one answer shows

routes = Routes("/api/v1/pools", "pools")


@routes.get("", needs=Action.READ_FLEET)
async def list_pools(call: Call) -> PoolList:
    """Returns all pools with their workers."""
    return PoolList(await _pools(call.services, call.who))


@routes.get("/plan", needs=Action.READ_FLEET, costly=True)
async def plan(call: Call, workers: int | None = None, target: str | None = None) -> Plan:
    """Shows what the pools would do now and why; or with so many workers, or another target."""
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
