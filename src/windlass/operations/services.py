"""What operations work with: the engine, and what is built around it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from windlass.api.fleet.services import FleetServices
from windlass.api.graphs.graphs import WorkflowGraphs
from windlass.api.jobs import Jobs
from windlass.api.lists.overview import Overviews
from windlass.api.queries import Queries
from windlass.api.steps.signals import Signals
from windlass.api.workflows import Workflows
from windlass.engine.access import Access
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.engine.history.event_lines import WorkerNames
from windlass.engine.history.read_events import EventReader
from windlass.engine.pools.pools import Pools
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.schedules import Schedules
from windlass.engine.schedules.templates import Templates
from windlass.ports.clock import Clock
from windlass.wire.jobs import SubmitReply, SubmitRequest

if TYPE_CHECKING:
    from windlass.operations.dispatch.call import Call


class Services(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What every operation finds; `windlass.wiring.services` builds it.

    A server has more (`windlass.server.services`), which only its own routes use.
    """

    engine: Engine
    queries: Queries
    overviews: Overviews
    jobs: Jobs
    workflows: Workflows
    graphs: WorkflowGraphs
    signals: Signals
    files: Files
    access: Access
    feed: EventReader
    names: WorkerNames
    clock: Clock
    templates: Templates
    schedules: Schedules
    reactions: Reactions
    pools: Pools
    fleet: FleetServices
    # Submits jobs in a span; None: no spans are exported.
    submit_traced: "Callable[[Call, SubmitRequest], Awaitable[SubmitReply]] | None" = None
