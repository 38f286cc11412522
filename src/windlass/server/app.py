"""The whole server as one ASGI application."""

from collections.abc import Collection
from importlib.metadata import version
from typing import Any, Final

from windlass.domain.access.actions import Action
from windlass.server.http.asgi import Application
from windlass.server.http.call import Call
from windlass.server.http.dispatch import Dispatcher
from windlass.server.http.openapi import describe
from windlass.server.http.origin import Hosts
from windlass.server.http.routes import Routes
from windlass.server.routes import ALL
from windlass.server.services import Services

OPENAPI_TYPE: Final = "application/vnd.oai.openapi+json"

description_routes = Routes("", "system")


@description_routes.get("/openapi.json", needs=Action.DESCRIBE_API, media_type=OPENAPI_TYPE)
async def describe_routes(call: Call) -> dict[str, Any]:
    """Returns this description."""
    del call
    return describe(ALL, version("windlass"))


ROUTES: Final = (*ALL, *description_routes)


def create_app(services: Services, hosts: Collection[str] | None = ()) -> Application:
    """Returns the application that answers with these services.

    `hosts` are names of the server beside those of loopback; None accepts every name.
    """
    body_limit = services.engine.config.batch_bytes * 8
    return Dispatcher(ROUTES, services, Hosts(hosts), body_limit)
