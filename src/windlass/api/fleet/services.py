"""What the routes for pages about the fleet work with."""

from typing import NamedTuple

from windlass.api.fleet.history import Histories
from windlass.api.fleet.namespaces import Namespaces
from windlass.api.fleet.tasks import Tasks
from windlass.api.fleet.workers import FleetPages
from windlass.api.jobs import Jobs
from windlass.api.queries import Queries
from windlass.engine.engine import Engine
from windlass.ports.clock import Clock


class FleetServices(NamedTuple):
    """Reads what pages about the fleet show."""

    tasks: Tasks
    histories: Histories
    pages: FleetPages
    namespaces: Namespaces


def fleet_services(engine: Engine, queries: Queries, clock: Clock) -> FleetServices:
    """Returns the services on a started engine."""
    return FleetServices(
        tasks=Tasks(engine, Jobs(engine, queries), clock),
        histories=Histories(engine),
        pages=FleetPages(engine),
        namespaces=Namespaces(engine),
    )
