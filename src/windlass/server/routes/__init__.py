"""The routes of a server, `ALL`: every operation, and those that only a server has.

The latter are about its process, its sessions and its open pages.
"""

from typing import Final

from windlass.operations.all_routes import ALL as OPERATIONS
from windlass.operations.dispatch.routes import Route
from windlass.server.audit.routes import routes as audit_routes
from windlass.server.live.routes import routes as live_routes
from windlass.server.routes import health
from windlass.server.sign_in.routes import routes as sign_in_routes

ALL: Final[tuple[Route, ...]] = (
    *health.routes,
    *OPERATIONS,
    *live_routes,
    *audit_routes,
    *sign_in_routes,
)
