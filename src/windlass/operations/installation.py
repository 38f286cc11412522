"""What can be asked of the whole installation: plug-ins, verification, namespaces, names."""

import msgspec

from windlass.domain.access.rights import Action, sees
from windlass.domain.config import Config
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.files import NameRow
from windlass.domain.values.quantities import format_moment
from windlass.engine.fleet.epochs import describe, known_losses
from windlass.engine.verify import verify as replay
from windlass.messages.files import NameInfo, NameList, NameRequest
from windlass.messages.system import (
    NamespaceList,
    PluginInfo,
    PluginList,
    PluginPageInfo,
    Verified,
    ViolationInfo,
)
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.plugins import InstalledPlugin, installed_plugins
from windlass.store.store import Store

_shape = msgspec.json.Decoder(Shape).decode

routes = Routes("", "system")


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


@routes.post("/api/v1/verify", needs=Action.VERIFY, costly=True)
async def verify(call: Call) -> Verified:
    """Replays the event log, compares it with the state and checks the invariants."""
    return await check(call.services.engine.store, call.services.engine.config)


@routes.get("/api/v1/namespaces", needs=Action.READ_JOBS)
async def namespaces(call: Call) -> NamespaceList:
    """Returns the namespaces that have jobs and that the caller may see."""
    rows = await call.services.engine.store.read(lambda tx: tx.catalog.shapes_after(0))
    found = {_shape(row.body).namespace for row in rows}
    return NamespaceList([name for name in sorted(found) if sees(call.who, name)])


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


async def check(store: Store, config: Config) -> Verified:
    """Returns the violations of a store, and the losses that it knows of."""
    found = await replay(store, config)
    losses = await store.read(known_losses)
    return Verified(
        [ViolationInfo(v.invariant, v.message, v.job, v.seq) for v in found],
        [describe(gap) for gap in losses],
    )
