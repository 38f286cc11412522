"""The whole server as one ASGI application."""

import socket
from collections.abc import Collection
from importlib.metadata import version
from typing import Any, Final

from windlass.dashboard import Page
from windlass.domain.access.rights import Action
from windlass.domain.values.addresses import is_loopback
from windlass.operations.dispatch.routes import Routes
from windlass.server.http.asgi import Application, Receive, Scope, Send
from windlass.server.http.authentication import Hosts
from windlass.server.http.call import HttpCall
from windlass.server.http.dispatch import Dispatcher
from windlass.server.http.openapi import describe
from windlass.server.plugins import PluginPages, server_parts
from windlass.server.routes import ALL
from windlass.server.serve import Listen, Serving
from windlass.server.services import ServerServices

STRICT: Final = (b"strict-transport-security", b"max-age=31536000")  # a year
OPENAPI_TYPE: Final = "application/vnd.oai.openapi+json"

description_routes = Routes("", "system")


@description_routes.get("/openapi.json", needs=Action.DESCRIBE_API, media_type=OPENAPI_TYPE)
async def describe_routes(call: HttpCall) -> dict[str, Any]:
    """Returns this description."""
    del call
    return describe(API, version("windlass"))


API: Final = (*ALL, *(route for part in server_parts().values() for route in part.routes))
ROUTES: Final = (*API, *description_routes)


def create_app(
    services: ServerServices,
    names: Collection[str] = (),
    exposed: bool = False,
    page: Page | None = None,
) -> Application:
    """Returns the application that answers with these services.

    `names` are those of the server beside loopback's and `http.host_names`; an `exposed` one can
    be reached from other machines. With a `page`, browsers get the dashboard.
    """
    config = services.engine.config
    hosts = Hosts({*names, *config.http.host_names}, exposed)
    routes = Dispatcher(ROUTES, services, hosts, config.batch_bytes * 8)
    plugin_pages = None if page is None else PluginPages()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        part: Application = routes
        of_plugin = None if plugin_pages is None else plugin_pages.find(scope)
        if of_plugin is not None:
            part, scope = of_plugin
        elif page is not None and page.answers(scope):
            part = page
        await part(scope, receive, only_by_tls(send) if scope.get("scheme") == "https" else send)

    return answer


def only_by_tls(send: Send) -> Send:
    """Returns a way to answer that tells browsers to call this host by https only."""

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], STRICT]}
        await send(message)

    return answer


def start_serving(
    services: ServerServices,
    listen: Listen,
    bound: socket.socket,
    names: Collection[str] = (),
    dashboard: bool = True,
) -> Serving:
    """Starts to answer on a socket, with the limits of the configuration."""
    page = Page() if dashboard else None
    application = create_app(services, names, not is_loopback(listen.host), page)
    meters, limits = services.meters, services.engine.config.http
    serving = Serving(application, listen, bound, services.stop_waiting, limits, meters.refuse)
    meters.connections = lambda: serving.connections
    serving.start()
    return serving
