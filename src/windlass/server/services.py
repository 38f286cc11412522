"""What the routes work with: the engine, and the services beside it."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from litestar.di import NamedDependency

from windlass.api.planning import EnginePlanning
from windlass.api.queries import Queries
from windlass.domain.roles import Identity
from windlass.engine.access import Access
from windlass.engine.engine import Engine
from windlass.engine.files import Files
from windlass.engine.pools import Pools
from windlass.engine.reactions import Reactions
from windlass.engine.schedules import Schedules
from windlass.engine.templates import Templates
from windlass.ports.clock import Clock
from windlass.server.feed import Feed
from windlass.server.metrics import Meters


class Services(NamedTuple):
    """Everything a server needs, chosen by the wiring."""

    engine: Engine
    files: Files
    access: Access
    feed: Feed
    meters: Meters
    clock: Clock
    templates: Templates
    schedules: Schedules
    reactions: Reactions
    pools: Pools
    leave_pools_alone: Callable[[], Awaitable[None]]  # from now on; what was begun is finished

    def planning(self, who: Identity) -> EnginePlanning:
        """Templates and schedules, as this asker handles them."""
        return EnginePlanning(self.templates, self.schedules, self.reactions, who)


# How handlers ask for the two.
UseServices = NamedDependency[Services]
UseQueries = NamedDependency[Queries]
