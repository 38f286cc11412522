"""Builds what operations work with, over an engine that was started."""

from functools import partial
from pathlib import Path
from typing import Final

from windlass.assembly.backend import Backend
from windlass.clock import RealClock, RealSecrets
from windlass.domain.pools.pools import Pool
from windlass.engine.access import Access, SignedTokens
from windlass.engine.history.events import EventReader, WorkerNames
from windlass.engine.pools.pools import Pools
from windlass.operations.graphs import WorkflowGraphs
from windlass.operations.history import Histories
from windlass.operations.jobs import Submissions
from windlass.operations.namespace_loads import Namespaces
from windlass.operations.overview import Overviews
from windlass.operations.queries import Queries
from windlass.operations.services import Services
from windlass.operations.tasks import Tasks
from windlass.operations.worker_pages import FleetPages
from windlass.ports.clock import Clock
from windlass.ports.provider import Provider

POOLS: Final = "pools"  # below the data directory: what workers of local pools keep


def make_services(
    backend: Backend, data: Path, address: str = "", signed: SignedTokens | None = None
) -> Services:
    """Returns what operations work with.

    Workers of pools find the server at `address`; without one, this process starts none. `signed`
    knows tokens of other issuers.
    """
    engine, clock, secrets = backend.engine, RealClock(), RealSecrets()
    queries = Queries(engine, backend.inbox)
    submissions = Submissions(engine, queries)
    return Services(
        engine=engine,
        queries=queries,
        overviews=Overviews(engine),
        submissions=submissions,
        graphs=WorkflowGraphs(engine),
        new_key=secrets.secret,
        files=backend.files,
        access=Access(engine, secrets, signed),
        feed=EventReader(engine.store),
        names=WorkerNames(engine.store),
        clock=clock,
        templates=backend.templates,
        schedules=backend.schedules,
        reactions=backend.reactions,
        pools=Pools(engine, secrets, partial(_provider, place=data / POOLS, clock=clock), address),
        tasks=Tasks(engine, submissions, clock),
        histories=Histories(engine),
        pages=FleetPages(engine),
        loads=Namespaces(engine),
    )


def _provider(pool: Pool, place: Path, clock: Clock) -> Provider:
    from windlass.providers import make_provider  # loaded by those that have pools

    return make_provider(pool, place=place, clock=clock)
