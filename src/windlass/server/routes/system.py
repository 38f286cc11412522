"""Routes about the server itself: health, metrics, verification, namespaces, names."""

from prometheus_client.metrics_core import Metric as Family

from windlass.api.verification import check
from windlass.domain.access.rights import Action, sees
from windlass.domain.rows.files import NameRow
from windlass.domain.values.quantities import format_moment
from windlass.plugins import InstalledPlugin, installed_plugins
from windlass.server.http.binding import Body
from windlass.server.http.call import Call
from windlass.server.http.replies import TEXT, Reply
from windlass.server.http.routes import Routes
from windlass.server.metrics.series import gauge
from windlass.server.metrics.store_state import families, read_state
from windlass.wire.files import NameInfo, NameList, NameRequest
from windlass.wire.system import (
    Health,
    NamespaceList,
    PluginInfo,
    PluginList,
    PluginPageInfo,
    Verified,
)

routes = Routes("", "system")


@routes.get("/healthz", needs=Action.CHECK_HEALTH)
async def healthz(call: Call) -> Health:
    """Answers as long as the process is alive."""
    del call
    return Health("ok")


@routes.get("/readyz", needs=Action.CHECK_HEALTH)
async def readyz(call: Call) -> Reply[Health]:
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
async def metrics(call: Call) -> bytes:
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


@routes.get("/api/v1/plugins", needs=Action.DESCRIBE_API)
async def plugins(call: Call) -> PluginList:
    """Returns the plug-ins of this server, with the pages that they add to the dashboard."""
    del call
    return PluginList([_show_plugin(one) for one in installed_plugins()])


def _show_plugin(found: InstalledPlugin) -> PluginInfo:
    page = None if found.plugin is None else found.plugin.page
    shown = None
    if page is not None:
        shown = PluginPageInfo(page.label, page.view or f"/plugins/{found.name}/", page.needs)
    return PluginInfo(
        name=found.name, version=found.version, loaded=found.plugin is not None, page=shown
    )


@routes.post("/api/v1/verify", needs=Action.VERIFY)
async def verify(call: Call) -> Verified:
    """Replays the event log, compares it with the state and checks the invariants."""
    return await check(call.services.engine.store, call.services.engine.config)


@routes.get("/api/v1/namespaces", needs=Action.READ_JOBS)
async def namespaces(call: Call) -> NamespaceList:
    """Returns the namespaces that have jobs and that the caller may see."""
    found = await call.services.queries.namespaces()
    return NamespaceList([name for name in found if sees(call.who, name)])


@routes.get("/api/v1/names", needs=Action.READ_NAMES)
async def names(call: Call) -> NameList:
    """Returns the names that `$lookup` finds."""
    rows = await call.services.engine.store.read(lambda tx: tx.files.names(None))
    return NameList(
        [_show(row) for row in rows if sees(call.who, row.namespace, Action.READ_NAMES)]
    )


@routes.put("/api/v1/names/{name:path}", needs=Action.SET_NAMES)
async def set_name(call: Call, name: str, data: Body[NameRequest]) -> NameInfo:
    """Lets a name point to an artifact."""
    await call.services.queries.check_visible([data.job], call.who)
    return _show(await call.services.files.set_name(name, data.job, data.artifact))


def _show(row: NameRow) -> NameInfo:
    return NameInfo(
        name=row.name,
        namespace=row.namespace,
        job=row.job,
        artifact=row.artifact,
        sha256=row.sha256,
        set_at=format_moment(row.set_at),
    )
