"""Routes about queues, and the shares of namespaces."""

from windlass.domain.access.rights import Action
from windlass.messages.workers import (
    Changed,
    NamespaceInfo,
    NamespaceWeights,
    QueueLimits,
    QueueList,
    WeightRequest,
)
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes

routes = Routes("/api/v1/queues", "queues")
namespace_routes = Routes("/api/v1/namespaces", "queues")


@routes.get("", needs=Action.READ_FLEET)
async def list_queues(call: Call) -> QueueList:
    """Returns the queues that have jobs or settings, and that the caller's namespaces use."""
    return QueueList(await call.services.queries.queue_list(call.who))


@routes.post("/{name:str}/pause", needs=Action.MANAGE_QUEUES)
async def pause(call: Call, name: str) -> Changed:
    """Pauses a queue: workers get no more jobs from it."""
    return Changed((await call.services.engine.queues.pause(name, call.who.name)).applied)


@routes.post("/{name:str}/resume", needs=Action.MANAGE_QUEUES)
async def resume(call: Call, name: str) -> Changed:
    """Resumes a queue."""
    return Changed((await call.services.engine.queues.resume(name, call.who.name)).applied)


@routes.post("/{name:str}/limits", needs=Action.MANAGE_QUEUES)
async def limit(call: Call, name: str, data: Body[QueueLimits]) -> Changed:
    """Sets how many jobs of a queue may run, how, and for how long."""
    done = await call.services.engine.queues.set_limits(name, data, call.who.name)
    return Changed(done.applied)


@namespace_routes.get("/weights", needs=Action.MANAGE_QUEUES)
async def list_weights(call: Call) -> NamespaceWeights:
    """Returns the namespaces whose weight was set; all others have weight 1."""
    store = call.services.engine.store
    weights = await store.read(lambda tx: tx.placement.namespace_weights())
    return NamespaceWeights([NamespaceInfo(*pair) for pair in weights.items()])


@namespace_routes.post("/{name:str}/weight", needs=Action.MANAGE_QUEUES)
async def set_weight(call: Call, name: str, data: Body[WeightRequest]) -> Changed:
    """Sets the weight of a namespace."""
    return Changed(
        await call.services.engine.queues.set_namespace_weight(name, data.weight, call.who.name)
    )
