"""Builds an engine with its loops over an open store, and what operations work with."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from windlass.assembly.stores import Opening, open_blobs, open_store
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.access.sign_in import SignIn
from windlass.domain.config import Config
from windlass.domain.pools.pools import Pool
from windlass.domain.rows.events import Level
from windlass.domain.values.addresses import Network, parse_networks
from windlass.engine.access import Access, SignedTokens
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.engine.fleet.epochs import note_settings
from windlass.engine.graphs import Graphs
from windlass.engine.history.events import EventReader, WorkerNames
from windlass.engine.inbox import Inbox
from windlass.engine.loops.capability import CapabilityLoop
from windlass.engine.loops.planning import CronLoop, InboxLoop, ReactionsLoop, WebhooksLoop
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop, SchedulingLoop
from windlass.engine.loops.statistics import SeriesLoop, StatisticsLoop
from windlass.engine.loops.ticker import Loop, LoopGroup, Standby, Ticker
from windlass.engine.loops.watchdog import WatchdogLoop
from windlass.engine.pools.pools import Pools
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.schedules import Schedules
from windlass.engine.schedules.templates import Templates
from windlass.executors.loading import load_kinds
from windlass.operations.jobs import Submissions
from windlass.operations.planner import WirePlanner
from windlass.operations.queries import Queries
from windlass.operations.queues import LiveDepths
from windlass.operations.rights import Rights
from windlass.operations.services import Services
from windlass.operations.tasks import WorkersTasks
from windlass.ports.blobs import Blobs
from windlass.ports.clock import Clock
from windlass.ports.loop_time import load
from windlass.ports.provider import Provider
from windlass.ports.webhooks import Courier, Delivered, Delivery
from windlass.store.store import Store

POOLS: Final = "pools"  # below the data directory: what workers of local pools keep


class ServerOptions(NamedTuple):
    """Where a server keeps its data."""

    store: str
    blobs: str
    config: Config = Config()
    imports: tuple[str, ...] = ()  # modules whose tasks the server checks
    address: str = ""  # where workers of pools find it; empty: it runs no pools
    data: Path = Path()  # where workers of local pools keep things
    stopped: Callable[[], bool] = lambda: False  # whether to stop waiting for the store
    log_level: Level = Level.OFF  # the lowest level of the events in its log
    sign_in: SignIn = SignIn()
    plugins: Mapping[str, Sequence[str]] = MappingProxyType({})  # what plug-ins declare


class Backend(NamedTuple):
    """An engine and the services around it."""

    engine: Engine
    files: Files
    blobs: Blobs
    loops: LoopGroup
    templates: Templates
    schedules: Schedules
    reactions: Reactions
    courier: Courier
    inbox: Inbox

    async def close(self) -> None:
        """Stops everything."""
        self.inbox.close()
        await self.loops.stop()
        await self.courier.close()
        await self.files.merging.close()
        await self.engine.close()
        await self.blobs.close()
        await self.engine.store.close()


class _LateCourier:
    """Loads the HTTP client with the first webhook: it takes a fifth of a server's start."""

    def __init__(self, timeout_ms: int, allowed: Sequence[Network]) -> None:
        self._options = (timeout_ms, allowed)
        self._courier: Courier | None = None

    async def deliver(self, delivery: Delivery) -> Delivered:
        if self._courier is None:
            make = (await load("windlass.client.webhooks")).HttpCourier
            self._courier = self._courier or make(RealClock(), *self._options)
        return await self._courier.deliver(delivery)

    async def close(self) -> None:
        if self._courier is not None:
            await self._courier.close()


def make_backend(store: Store, blobs: str, config: Config, imports: Sequence[str] = ()) -> Backend:
    """Builds an engine over an open store, and starts neither it nor its loops."""
    opened = open_blobs(blobs)
    engine = Engine(store, config, RealChance(), tasks=load_kinds(imports))

    planner = WirePlanner()
    networks = parse_networks(config.webhook_networks, "webhook_networks")
    courier = _LateCourier(config.webhook_timeout_ms, networks)
    schedules = Schedules(engine, planner)
    reactions = Reactions(engine, planner, courier)
    inbox = Inbox(engine, Submissions(engine, Queries(engine)).read_inbox)

    def loops() -> Sequence[Loop[Any]]:
        return (
            SchedulingLoop(engine),
            HealthLoop(engine),
            CleanupLoop(engine),
            RetentionLoop(engine, opened),
            WatchdogLoop(engine),
            CronLoop(engine, schedules.runs),
            ReactionsLoop(engine, reactions),
            WebhooksLoop(engine, reactions),
            StatisticsLoop(engine),
            SeriesLoop(engine),
            CapabilityLoop(engine),
            InboxLoop(engine, inbox),
        )

    group = LoopGroup(loops, RealClock(), config.drain_limit_ms, engine.counters)
    templates = Templates(engine, planner)
    files = Files(engine, opened)
    return Backend(engine, files, opened, group, templates, schedules, reactions, courier, inbox)


@asynccontextmanager
async def running_backend(options: ServerOptions) -> AsyncIterator[Backend]:
    """Runs an engine without its loops."""
    opening = Opening(options.blobs, options.config.store_wait_ms, options.stopped)
    store = await open_store(options.store, options.config, opening)
    backend = make_backend(store, options.blobs, options.config, options.imports)
    try:
        await backend.engine.start()
        await backend.engine.run(note_settings)
        backend.inbox.listen()
        yield backend
    finally:
        await backend.close()


@asynccontextmanager
async def running_without_server(options: ServerOptions) -> AsyncIterator[Backend]:
    """Runs an engine whose loops run only while no server is alive."""
    async with running_backend(options) as backend, standing_by(backend):
        yield backend


@asynccontextmanager
async def standing_by(backend: Backend) -> AsyncIterator[None]:
    """Runs the loops while no server is alive; a store that is not shared has no server."""
    if not backend.engine.store.shared or backend.engine.store.inline:
        backend.loops.start()
        yield
        return
    standby = Ticker(Standby(backend.engine, backend.loops), RealClock())
    standby.start()
    try:
        yield
    finally:
        await standby.stop(backend.engine.config.drain_limit_ms)


def make_services(
    backend: Backend, data: Path, address: str = "", signed: SignedTokens | None = None
) -> Services:
    """Returns what operations work with.

    Workers of pools find the server at `address`; without one, this process starts none. `signed`
    knows tokens of other issuers.
    """
    engine, clock, secrets = backend.engine, RealClock(), RealSecrets()
    queries = Queries(engine, backend.inbox)
    return Services(
        engine=engine,
        queries=queries,
        rights=Rights(engine),
        depths=LiveDepths(engine.catalog),
        submissions=Submissions(engine, queries),
        graphs=Graphs(engine.store, engine.catalog),
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
        tasks=WorkersTasks(engine, clock),
    )


def _provider(pool: Pool, place: Path, clock: Clock) -> Provider:
    from windlass.providers import make_provider  # loaded by those that have pools

    return make_provider(pool, place=place, clock=clock)
