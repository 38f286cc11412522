"""Routes about what workers and pools did over time."""

from windlass.domain.access.rights import Action
from windlass.server.http.call import Call
from windlass.server.http.routes import Routes
from windlass.wire.fleet.history import PoolHistory, WorkerHistory
from windlass.wire.numbers import Id

routes = Routes("/api/v1", "history")


@routes.get("/workers/{worker:int}/history", needs=Action.READ_FLEET)
async def worker_history(
    call: Call, worker: Id, since: str | None = None, until: str | None = None
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
