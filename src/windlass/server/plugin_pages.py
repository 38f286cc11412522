"""Sends the pages of plug-ins: static files below /plugins/NAME/, under the rules of the dashboard.

Everybody may fetch them, as the dashboard itself: they hold no data. What a page shows comes from
the API, with the session of whoever looks at it.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import structlog

from windlass.dashboard.files import Files
from windlass.dashboard.page import Page
from windlass.plugins import Plugin, PluginFailed, working_plugins
from windlass.server.http.asgi import Application, Scope

PREFIX: Final = "/plugins/"

log = structlog.get_logger()


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
