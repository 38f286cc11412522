"""Every operation, by its route."""

from typing import Final

from windlass.operations import (
    access,
    attempts,
    bulk,
    events,
    explain,
    files,
    graphs,
    history,
    installation,
    jobs,
    overview,
    pools,
    queues,
    schedules,
    signals,
    tasks,
    templates,
    worker_pages,
    workers,
    workflows,
)
from windlass.operations.dispatch.routes import Route

ALL: Final[tuple[Route, ...]] = (
    *installation.routes,
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
    *workflows.routes,
    *graphs.routes,
    *templates.routes,
    *schedules.routes,
    *pools.routes,
    *overview.routes,
    *tasks.routes,
    *worker_pages.routes,
    *worker_pages.namespace_routes,
    *history.routes,
)
