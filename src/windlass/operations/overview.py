"""Routes about the whole: figures over time, and what needs attention."""

from windlass.api.lists.attention import Attention
from windlass.domain.access.rights import Action
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.wire.overview import AttentionList, Overview

routes = Routes("/api/v1", "overview")


@routes.get("/overview", needs=Action.READ_JOBS)
async def overview(
    call: Call,
    namespace: str | None = None,
    since: str | None = None,
    until: str | None = None,
    as_of: str | None = None,
) -> Overview:
    """Returns depths, throughput, waits, run times, workers and failures over time.

    `since` and `until` are times, or how long ago; without them it is the last hour. `as_of` shows
    it as it was at a time.
    """
    return await call.services.overviews.show(call.who, namespace, since, until, as_of)


@routes.get("/attention", needs=Action.READ_JOBS, costly=True)
async def attention(call: Call, namespace: str | None = None) -> AttentionList:
    """Returns what a person should look at: each with its reason, and what would help."""
    services = call.services
    found = Attention(services.engine, services.pools)
    return await found.show(call.who, namespace)
