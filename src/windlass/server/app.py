"""The whole server as one ASGI application."""

from collections.abc import Callable
from typing import Any

from litestar import Litestar
from litestar.config.response_cache import ResponseCacheConfig
from litestar.di import Provide
from litestar.exceptions import HTTPException

from windlass.api.queries import Queries
from windlass.domain.errors import WindlassError
from windlass.server.access import AccessRoutes
from windlass.server.asgi import Receive, Scope, Send
from windlass.server.bulk import BulkRoutes
from windlass.server.errors import handle_depth, handle_http, handle_unknown, handle_windlass
from windlass.server.events import EventRoutes
from windlass.server.explain import ExplainRoutes
from windlass.server.files import AttemptRoutes, FileRoutes
from windlass.server.guard import Authentication, guard
from windlass.server.jobs import JobRoutes
from windlass.server.openapi import openapi_config
from windlass.server.pools import PoolRoutes
from windlass.server.queues import NamespaceRoutes, QueueRoutes
from windlass.server.schedules import ReactionRoutes, ScheduleRoutes
from windlass.server.services import Services
from windlass.server.sync_route import PATH, SyncRoute
from windlass.server.system import SystemRoutes
from windlass.server.templates import TemplateRoutes
from windlass.server.workers import WorkerRoutes
from windlass.server.workflows import WorkflowRoutes

SYNC_LIMIT = 64 * 1024 * 1024

Application = Callable[[Scope, Receive, Send], Any]


def create_app(services: Services) -> Application:
    """Routes, guards and errors around the services."""
    api = _litestar(services)
    sync = SyncRoute(services.engine, services.access, SYNC_LIMIT)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            found = PATH.match(scope["path"])
            if found is not None:
                await sync(scope, receive, send, int(found[1]))
                return
        await api(scope, receive, send)  # type: ignore[arg-type]

    return application


def _litestar(services: Services) -> Litestar:
    queries = Queries(services.engine)
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
            "queries": Provide(lambda: queries, sync_to_thread=False),
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
        signature_types=[Services, Queries],
        logging_config=None,
    )
