"""What a plug-in adds to a server: routes with their rights, a service, metrics, and a page.

It runs in the server's process and can do what the server can: whoever installs a package there
trusts it. Callers reach it through its routes only, and each names the action that it is.

Pages are static files below /plugins/NAME/, under the rules of the dashboard. Everybody may fetch
them, as the dashboard itself: they hold no data. What a page shows comes from the API, with the
session of whoever looks at it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog
from prometheus_client.metrics_core import Metric as Family

from windlass.dashboard.page import Files, Page
from windlass.domain.access.rights import RIGHTS, Role
from windlass.domain.values.errors import WindlassError
from windlass.operations.dispatch.routes import Route
from windlass.plugins import Plugin, PluginFailed, load_part, working_plugins
from windlass.ports.clock import Clock
from windlass.server.http.asgi import Application, Scope
from windlass.server.metrics.catalogue import Metric

PREFIX: Final = "/plugins/"  # of pages

log = structlog.get_logger()


class ServerContext(NamedTuple):
    """What a plug-in's service is made from; `options` are those of its flags."""

    options: Mapping[str, Sequence[str]]
    data: Path
    clock: Clock


class ServerPart(NamedTuple):
    """What a plug-in adds to a server.

    `start` makes the service that its routes find as `call.services.plugins[NAME].service`; a
    `WindlassError` from it stops the server, for an option that makes no sense. `families` makes
    the families of its `metrics` from that service, within a few seconds.
    """

    routes: Iterable[Route] = ()
    start: Callable[[ServerContext], Any] | None = None
    metrics: tuple[Metric, ...] = ()
    families: Callable[[Any], Awaitable[list[Family]]] | None = None


class RunningPart(NamedTuple):
    """The part of a plug-in in a running server, and its service."""

    name: str
    part: ServerPart
    service: Any

    async def families(self) -> list[Family]:
        """Returns its metrics; none if they cannot be read."""
        if self.part.families is None:
            return []
        try:
            return await self.part.families(self.service)
        except Exception:
            log.exception("plugin_metrics_failed", plugin=self.name)
            return []


@cache
def server_parts() -> Mapping[str, ServerPart]:
    """Returns what plug-ins add to servers; leaves out what cannot be loaded, and logs it."""
    parts: dict[str, ServerPart] = {}
    for plugin in working_plugins():
        try:
            part = load_server_part(plugin)
        except PluginFailed as error:
            log.error("plugin_not_loaded", plugin=plugin.name, error=error.message)
            continue
        if part is not None:
            parts[plugin.name] = part
    return parts


def load_server_part(plugin: Plugin) -> ServerPart | None:
    """Imports what a plug-in adds to servers; raises `PluginFailed` if it breaks the rules."""
    if not plugin.server:
        return None
    part: ServerPart = load_part(plugin.name, "the server part", plugin.server)
    for route in part.routes:
        problem = _problem(plugin.name, route)
        if problem:
            raise PluginFailed(f"plug-in {plugin.name}: {route.method} {route.path} {problem}")
    return part


def _problem(name: str, route: Route) -> str:
    """Returns which rule a route breaks; empty if none."""
    place = f"/api/v1/{name}"
    if route.path != place and not route.path.startswith(f"{place}/"):
        return f"must be below {place}"
    right = RIGHTS.get(route.needs)
    if right is None or right.is_open or right.unlimited is Role.WORKER:
        return f"must need an action of people, not {route.needs}"
    return ""


def start_parts(
    options: Mapping[str, Sequence[str]], data: Path, clock: Clock
) -> dict[str, RunningPart]:
    """Makes the services of all plug-ins; one that fails has no service, and the log says so."""
    running: dict[str, RunningPart] = {}
    for name, part in server_parts().items():
        service = None
        if part.start is not None:
            try:
                service = part.start(ServerContext(options, data, clock))
            except WindlassError:
                raise
            except Exception:
                log.exception("plugin_not_started", plugin=name)
        running[name] = RunningPart(name, part, service)
    return running


class PluginPages:
    """Serves the pages of all plug-ins that bring files for one."""

    def __init__(self, plugins: Iterable[Plugin] | None = None) -> None:
        self._pages: dict[str, Application] = {}
        for plugin in working_plugins() if plugins is None else plugins:
            try:
                folder = page_folder(plugin)
            except PluginFailed as error:
                log.error("plugin_page_not_served", plugin=plugin.name, error=error.message)
                continue
            if folder is not None:
                self._pages[plugin.name] = Page(Files(folder))

    def find(self, scope: Scope) -> tuple[Application, Scope] | None:
        """Returns what answers a request, and the request as seen from the page's own folder."""
        root = scope.get("root_path", "")
        path: str = scope.get("path", "").removeprefix(root)
        if not path.startswith(PREFIX):
            return None
        name, slash, _ = path.removeprefix(PREFIX).partition("/")
        page = self._pages.get(name)
        if page is None or not slash:
            return None
        return page, {**scope, "root_path": f"{root}{PREFIX}{name}"}


def page_folder(plugin: Plugin) -> Path | None:
    """Returns the folder with the files of a plug-in's page; None if it has none of its own."""
    if plugin.page is None or not plugin.page.folder:
        return None
    package, _, name = plugin.page.folder.partition(":")
    spec = find_spec(package)
    places = () if spec is None else spec.submodule_search_locations or ()
    for place in places:
        if Path(place, name, "index.html").is_file():
            return Path(place, name)
    raise PluginFailed(f"plug-in {plugin.name}: no index.html in the folder {plugin.page.folder}")
