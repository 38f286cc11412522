"""What routes work with: the engine, and what is built around it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from windlass.api.fleet.services import FleetServices
from windlass.api.graphs.graphs import WorkflowGraphs
from windlass.api.jobs import Jobs
from windlass.api.lists.overview import Overviews
from windlass.api.queries import Queries
from windlass.api.rights import Rights
from windlass.api.schedules.planning import EnginePlanning
from windlass.api.steps.signals import Signals
from windlass.api.workflows import Workflows
from windlass.domain.access.rights import Identity
from windlass.engine.access import Access
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.engine.history.event_lines import WorkerNames
from windlass.engine.pools.pools import Pools
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.schedules import Schedules
from windlass.engine.schedules.templates import Templates
from windlass.ports.clock import Clock
from windlass.server.audit.log import AuditLog
from windlass.server.feed import Feed
from windlass.server.live.hub import LiveHub
from windlass.server.marks import Marks
from windlass.server.metrics import Meters
from windlass.server.plugins import RunningPart
from windlass.server.readiness import Readiness
from windlass.server.sign_in.callers import SignedCallers
from windlass.server.sign_in.code_flow import CodeFlow
from windlass.server.sign_in.rates import SignInRate
from windlass.tracing.exporting import Tracing

NO_PLUGINS: Final[Mapping[str, RunningPart]] = MappingProxyType({})


class Services(NamedTuple):
    """Everything that routes call; `windlass.wiring.server` builds it."""

    engine: Engine
    queries: Queries
    overviews: Overviews
    jobs: Jobs
    workflows: Workflows
    graphs: WorkflowGraphs
    signals: Signals
    files: Files
    access: Access
    feed: Feed
    live: LiveHub
    names: WorkerNames
    meters: Meters
    clock: Clock
    templates: Templates
    schedules: Schedules
    reactions: Reactions
    pools: Pools
    stop_pools: Callable[[], Awaitable[None]]  # starts nothing more, finishes what it began
    readiness: Readiness
    stopping: asyncio.Event  # cuts endless streams off
    callers: SignedCallers
    audit: AuditLog
    fleet: FleetServices
    sign_ins: SignInRate
    marks: Marks
    code_flow: CodeFlow | None = None  # None: browsers sign in with a token only
    plugins: Mapping[str, RunningPart] = NO_PLUGINS
    tracing: Tracing | None = None  # None: no spans are exported

    def stop_waiting(self) -> None:
        """Ends long polls and endless streams: the server stops."""
        self.stopping.set()
        self.engine.stop_waiting()

    def planning(self, who: Identity) -> EnginePlanning:
        """Returns templates and schedules with the rights of the caller."""
        return EnginePlanning(
            self.templates, self.schedules, self.reactions, Rights(self.engine), who
        )
