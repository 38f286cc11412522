"""Routes about a server's process: whether it is alive and can record jobs, and its metrics."""

from prometheus_client.metrics_core import Metric as Family

from windlass.domain.access.rights import Action
from windlass.messages.system import Health
from windlass.operations.dispatch.answers import TEXT, Reply
from windlass.operations.dispatch.routes import Routes
from windlass.server.http.call import HttpCall
from windlass.server.metrics.series import gauge
from windlass.server.metrics.store_state import families, read_state

routes = Routes("", "system")


@routes.get("/healthz", needs=Action.CHECK_HEALTH)
async def healthz(call: HttpCall) -> Health:
    """Answers as long as the process is alive."""
    del call
    return Health("ok")


@routes.get("/readyz", needs=Action.CHECK_HEALTH)
async def readyz(call: HttpCall) -> Reply[Health]:
    """Checks that jobs can be recorded: the store and the blobs take what is written.

    Only callers with a valid token learn which path or host is the problem. That of a worker that
    is not approved counts as none: everybody can get one.
    """
    problem = await call.services.readiness.problem()
    if problem is None:
        return Reply(Health("ok"), 200)
    known = call.caller is not None and not call.caller.shut_out
    return Reply(Health(problem.details if known else problem.summary), 503)


@routes.get("/metrics", needs=Action.READ_METRICS, media_type=TEXT)
async def metrics(call: HttpCall) -> bytes:
    """Returns the metrics for Prometheus."""
    services = call.services
    engine = services.engine
    problem = await services.readiness.problem()
    state = await read_state(engine, services.pools)
    paused = {name: bool(row.paused) for name, row in engine.catalog.queues.items()}
    counted = await engine.metrics()
    lag = max(0, state.newest - services.feed.position)
    gauges: list[Family] = [
        gauge("windlass_store_ready", {(): problem is None}),
        gauge("windlass_event_lag_events", {(): lag}),
        *families(state, paused, counted.queue_depth, services.meters.queues),
        *[one for part in services.plugins.values() for one in await part.families()],
    ]
    pool = getattr(engine.store, "pool", None)
    return services.meters.render(counted, pool, gauges)
