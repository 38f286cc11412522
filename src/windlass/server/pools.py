"""Routes about pools."""

from typing import Any

from litestar import Controller, Request, delete, get, put
from litestar.params import FromPath, FromQuery, JSONBody

from windlass.api.render_pools import show_costs, show_plan, show_pool
from windlass.domain.errors import InvalidInput, NotFound
from windlass.domain.moments import month_of
from windlass.domain.pools import MOST_WORKERS
from windlass.domain.quantities import parse_duration_ms
from windlass.domain.roles import Identity, Role
from windlass.server.guard import identity_of
from windlass.server.services import Services, UseServices
from windlass.wire.pools import CostList, Plan, PoolApplied, PoolInfo, PoolList
from windlass.wire.workers import Changed

Ask = Request[Any, Any, Any]


class PoolRoutes(Controller):
    """Apply, look at, plan and delete pools."""

    path = "/api/v1/pools"
    tags = ("pools",)

    @get("/", opt={"role": Role.VIEWER})
    async def list_pools(self, request: Ask, services: UseServices) -> PoolList:
        """All pools with their workers."""
        return PoolList(await _pools(services, identity_of(request)))

    @get("/plan", opt={"role": Role.VIEWER})
    async def plan(
        self,
        request: Ask,
        services: UseServices,
        workers: FromQuery[int | None] = None,
        target: FromQuery[str | None] = None,
    ) -> Plan:
        """What the pools would do now and why; or with so many workers, or another target."""
        if workers is not None and not 0 <= workers <= MOST_WORKERS:
            raise InvalidInput("workers", f"from 0 to {MOST_WORKERS}", workers)
        target_ms = None if target is None else parse_duration_ms(target, "target")
        if target_ms == 0:
            raise InvalidInput("target", "more than 0", target)
        named = not identity_of(request).namespaces
        return show_plan(await services.pools.plan(workers, target_ms), named)

    @get("/costs", opt={"role": Role.VIEWER})
    async def costs(
        self, request: Ask, services: UseServices, month: FromQuery[str | None] = None
    ) -> CostList:
        """What a month (2026-11) has cost so far, by pool, namespace and queue."""
        who = identity_of(request)
        number = _month(month) if month else month_of(await services.engine.now())
        rows = [row for row in await services.pools.costs(number) if who.sees(row.namespace)]
        costs = show_costs(rows)
        return CostList(month=f"{number // 100:04d}-{number % 100:02d}", costs=costs)

    @get("/{name:str}", opt={"role": Role.VIEWER})
    async def show(self, request: Ask, name: FromPath[str], services: UseServices) -> PoolInfo:
        """One pool."""
        return await _pool(services, name, identity_of(request))

    @put("/{name:str}", opt={"role": Role.ADMIN})
    async def apply(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[dict[str, Any]],
        services: UseServices,
    ) -> PoolApplied:
        """Make or change a pool. Its options may name programs that the server runs."""
        if data.get("name", name) != name:
            raise InvalidInput("name", f"the one in the address ({name})", data["name"])
        who = identity_of(request)
        _, applied = await services.pools.apply({**data, "name": name}, who.name)
        return PoolApplied(applied=applied, pool=await _pool(services, name, who))

    @delete("/{name:str}", opt={"role": Role.ADMIN}, status_code=200)
    async def remove(self, request: Ask, name: FromPath[str], services: UseServices) -> Changed:
        """Let a pool drain; it is gone when its workers are."""
        return Changed(await services.pools.delete(name, identity_of(request).name))


async def _pools(services: Services, who: Identity) -> list[PoolInfo]:
    """Pools as this asker may see them: the options of providers may hold secrets."""
    now = await services.engine.now()
    shown = await services.pools.all()
    return [show_pool(one, now, who.may(Role.ADMIN)) for one in shown]


async def _pool(services: Services, name: str, who: Identity) -> PoolInfo:
    for info in await _pools(services, who):
        if info.name == name:
            return info
    raise NotFound("pool", name)


def _month(text: str) -> int:
    year, dash, month = text.partition("-")
    if len(text) != 7 or not dash or not (year + month).isdigit() or not 1 <= int(month) <= 12:
        raise InvalidInput("month", "a month such as 2026-11", text)
    return int(year) * 100 + int(month)
