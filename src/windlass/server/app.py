"""The whole server as one ASGI application."""

from collections.abc import Callable, Collection
from typing import Any

from litestar import Litestar
from litestar.config.response_cache import ResponseCacheConfig
from litestar.di import Provide
from litestar.exceptions import HTTPException

from windlass.domain.values.errors import WindlassError
from windlass.server.access import AccessRoutes
from windlass.server.asgi import Receive, Scope, Send, send_json
from windlass.server.bulk import BulkRoutes
from windlass.server.errors import (
    handle_depth,
    handle_http,
    handle_unknown,
    handle_windlass,
    headers_of,
    status_of,
)
from windlass.server.events import EventRoutes
from windlass.server.explain import ExplainRoutes
from windlass.server.files import AttemptRoutes, FileRoutes
from windlass.server.guard import Authentication, Hosts, check_origin, guard
from windlass.server.jobs import JobRoutes
from windlass.server.openapi import openapi_config
from windlass.server.pools import PoolRoutes
from windlass.server.queues import NamespaceRoutes, QueueRoutes
from windlass.server.schedules import ReactionRoutes, ScheduleRoutes
from windlass.server.services import Desk, Services
from windlass.server.sync_route import PATH, SyncRoute
from windlass.server.system import SystemRoutes
from windlass.server.templates import TemplateRoutes
from windlass.server.workers import WorkerRoutes
from windlass.server.workflows import WorkflowRoutes

SYNC_LIMIT = 64 * 1024 * 1024

Application = Callable[[Scope, Receive, Send], Any]


def create_app(services: Services, hosts: Collection[str] | None = ()) -> Application:
    """Returns routes, guards and errors around the services.

    `hosts` are names of the server beside those of loopback; None accepts every name.
    """
    api = _litestar(services)
    known = Hosts(hosts)
    sync = SyncRoute(services.engine, services.access, SYNC_LIMIT)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await api(scope, receive, send)  # type: ignore[arg-type]
            return
        try:
            check_origin(scope, known)
        except WindlassError as error:
            await send_json(send, status_of(error), error.describe(), headers_of(error))
            return
        if scope["method"] == "POST":
            found = PATH.match(scope["path"])
            if found is not None:
                await sync(scope, receive, send, int(found[1]))
                return
        await api(scope, receive, send)  # type: ignore[arg-type]

    return application


def _litestar(services: Services) -> Litestar:
    desk = Desk(services.engine)
    return Litestar(
        route_handlers=[
            SystemRoutes,
            JobRoutes,
            BulkRoutes,
            ExplainRoutes,
            FileRoutes,
            WorkerRoutes,
            AttemptRoutes,
            QueueRoutes,
            NamespaceRoutes,
            AccessRoutes,
            EventRoutes,
            WorkflowRoutes,
            TemplateRoutes,
            ScheduleRoutes,
            ReactionRoutes,
            PoolRoutes,
        ],
        dependencies={
            "services": Provide(lambda: services, sync_to_thread=False),
            "desk": Provide(lambda: desk, sync_to_thread=False),
        },
        middleware=[Authentication(services.access)],
        guards=[guard],
        exception_handlers={
            WindlassError: handle_windlass,
            HTTPException: handle_http,
            RecursionError: handle_depth,
            Exception: handle_unknown,
        },
        openapi_config=openapi_config(),
        response_cache_config=ResponseCacheConfig(),
        request_max_body_size=services.engine.config.batch_bytes * 8,
        signature_types=[Services, Desk],
        logging_config=None,
    )
