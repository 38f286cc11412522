"""The routes, one module per subject; `ALL` lists every one with the action it is.

A route parses nothing and decides nothing itself: it calls `windlass.api` or the engine.
"""

from typing import Final

from windlass.server.audit.routes import routes as audit_routes
from windlass.server.http.routes import Route
from windlass.server.live.routes import routes as live_routes
from windlass.server.routes import (
    access,
    attempts,
    bulk,
    events,
    explain,
    files,
    jobs,
    pools,
    queues,
    signals,
    system,
    workers,
)
from windlass.server.routes.figures import overview
from windlass.server.routes.fleet import history as fleet_history
from windlass.server.routes.fleet import tasks as fleet_tasks
from windlass.server.routes.fleet import workers as fleet_workers
from windlass.server.routes.workflows import graphs, schedules, templates, workflows
from windlass.server.sign_in.routes import routes as sign_in_routes

ALL: Final[tuple[Route, ...]] = (
    *system.routes,
    *jobs.routes,
    *bulk.routes,
    *signals.routes,
    *explain.routes,
    *files.routes,
    *files.upload_routes,
    *workers.routes,
    *attempts.routes,
    *queues.routes,
    *queues.namespace_routes,
    *access.routes,
    *events.routes,
    *live_routes,
    *workflows.routes,
    *graphs.routes,
    *templates.routes,
    *schedules.routes,
    *pools.routes,
    *overview.routes,
    *fleet_tasks.routes,
    *fleet_workers.routes,
    *fleet_workers.namespace_routes,
    *fleet_history.routes,
    *audit_routes,
    *sign_in_routes,
)
