"""Routes for pages of very many workers, and for the load of namespaces."""

from typing import Annotated

import msgspec

from windlass.api.fleet.workers import FleetFilter
from windlass.api.queries import PAGE_LIMIT
from windlass.domain.access.rights import Action
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.wire.fleet.namespaces import NamespaceLoads
from windlass.wire.fleet.workers import FleetPage
from windlass.wire.workers import WorkerInfo

PageSize = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]

routes = Routes("/api/v1/fleet", "fleet")
namespace_routes = Routes("/api/v1/namespaces", "fleet")


@routes.get("", needs=Action.READ_FLEET)
async def list_fleet(
    call: Call,
    state: list[str] | None = None,
    name: str | None = None,
    pool: str | None = None,
    kind: str | None = None,
    requires: list[str] | None = None,
    after: str | None = None,
    limit: PageSize = 200,
) -> FleetPage:
    """Returns a page of workers by name, with counts by state and kind.

    `name` is a part of the name, `requires` are clauses as jobs have them (memory>=4GiB).
    """
    wanted = FleetFilter(state or (), name, pool, kind, requires or ())
    return await call.services.fleet.pages.page(wanted, after, limit, call.who)


@routes.get("/{name:str}", needs=Action.READ_FLEET)
async def show(call: Call, name: str) -> WorkerInfo:
    """Returns one worker by its name."""
    return await call.services.queries.worker(name, call.who)


@namespace_routes.get("/loads", needs=Action.READ_JOBS)
async def namespace_loads(call: Call) -> NamespaceLoads:
    """Returns the namespaces with how many of their jobs run and are ready."""
    return await call.services.fleet.namespaces.loads(call.who)
