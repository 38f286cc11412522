"""Routes about what workers and pools did over time."""

from windlass.domain.access.rights import Action
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.wire.fleet.history import PoolHistory, WorkerHistory
from windlass.wire.numbers import NameOrId

routes = Routes("/api/v1", "history")


@routes.get("/workers/{worker:str}/history", needs=Action.READ_FLEET, costly=True)
async def worker_history(
    call: Call, worker: NameOrId, since: str | None = None, until: str | None = None
) -> WorkerHistory:
    """Returns the attempts that ran on a worker, and what happened to it; at most 1,000.

    `since` and `until` are times, or how long ago; without them, the last hour.
    """
    return await call.services.fleet.histories.worker(worker, since, until, call.who)


@routes.get("/pools/{name:str}/history", needs=Action.READ_FLEET)
async def pool_history(
    call: Call, name: str, since: str | None = None, until: str | None = None
) -> PoolHistory:
    """Returns the machines of a pool as they came and went, its sizes, and what happened to it.

    `since` and `until` are times, or how long ago; without them, the last hour.
    """
    return await call.services.fleet.histories.pool(name, since, until, call.who)
