"""What a server's routes work with beside what every operation finds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from windlass.operations.services import Services
from windlass.server.audit_log import AuditLog
from windlass.server.feed import Feed
from windlass.server.live_pages import LiveHub
from windlass.server.marks import Marks
from windlass.server.metrics import Meters
from windlass.server.plugins import RunningPart
from windlass.server.readiness import Readiness
from windlass.server.sign_in.callers import SignedCallers
from windlass.server.sign_in.code_flow import CodeFlow, SignInRate
from windlass.tracing.exporting import Tracing

NO_PLUGINS: Final[Mapping[str, RunningPart]] = MappingProxyType({})


class ServerServices(Services, frozen=True, eq=False, kw_only=True):
    """Everything that routes call; `windlass.assembly.server` builds it."""

    feed: Feed
    live: LiveHub
    meters: Meters
    stop_pools: Callable[[], Awaitable[None]]  # starts nothing more, finishes what it began
    readiness: Readiness
    stopping: asyncio.Event  # cuts endless streams off
    callers: SignedCallers
    audit: AuditLog
    sign_ins: SignInRate
    marks: Marks
    code_flow: CodeFlow | None = None  # None: browsers sign in with a token only
    plugins: Mapping[str, RunningPart] = NO_PLUGINS
    tracing: Tracing | None = None  # None: no spans are exported

    def stop_waiting(self) -> None:
        """Ends long polls and endless streams: the server stops."""
        self.stopping.set()
        self.engine.stop_waiting()
