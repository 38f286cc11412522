"""The only place where implementations are chosen: stores, blobs, clocks, gateways."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from windlass.blobs.local import LocalBlobs
from windlass.blobs.memory import MemoryBlobs
from windlass.client.gateway import HttpGateway
from windlass.client.transport import Transport
from windlass.client.webhooks import HttpCourier
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.access.roles import Role
from windlass.domain.config import Config
from windlass.domain.schedules.webhooks import parse_networks
from windlass.domain.values.errors import InvalidInput
from windlass.engine.access import Access
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.engine.fleet.epochs import Restored, begin_epoch
from windlass.engine.loops.capability import CapabilityLoop
from windlass.engine.loops.cleanup import CleanupLoop
from windlass.engine.loops.cron import CronLoop
from windlass.engine.loops.duty import Duty, Presence, Standby
from windlass.engine.loops.health import HealthLoop
from windlass.engine.loops.pools import PoolsLoop
from windlass.engine.loops.reactions import ReactionsLoop, WebhooksLoop
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.loops.scheduling import SchedulingLoop
from windlass.engine.loops.statistics import StatisticsLoop
from windlass.engine.loops.ticker import Loop, Ticker
from windlass.engine.loops.watchdog import WatchdogLoop
from windlass.engine.pools.pools import Pools
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.schedules import Schedules
from windlass.engine.schedules.templates import Templates
from windlass.engine.verify import verify
from windlass.executors import add_named, load_executors, load_kinds
from windlass.executors.python.executor import PythonExecutor
from windlass.ports.blobs import Blobs
from windlass.ports.store import Store
from windlass.ports.webhooks import Courier
from windlass.providers import make_provider
from windlass.server.children import Children
from windlass.server.feed import Feed
from windlass.server.metrics import Meters
from windlass.server.planning import WirePlanner
from windlass.server.services import Services
from windlass.store.memory.store import MemoryStore
from windlass.store.sqlite.backup import back_up as back_up  # noqa: PLC0414 - for commands
from windlass.store.sqlite.opening import open_held
from windlass.wire.system import Verified, ViolationInfo
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import recall

POOLS: Final = "pools"  # below the data directory: what workers of local pools keep


class ServerOptions(NamedTuple):
    """Where a server keeps things."""

    store: str
    blobs: str
    config: Config = Config()
    imports: tuple[str, ...] = ()  # modules whose tasks it knows
    address: str = ""  # where workers of pools find it; empty: it has no pools to run
    data: Path = Path()  # where workers of local pools keep things


async def open_store(
    url: str,
    config: Config = Config(),  # noqa: B008 - frozen
    blobs: str = "",
) -> Store:
    """`sqlite:///path`, `postgresql://…`, or `memory:`; guests are told of `blobs`."""
    parts = urlsplit(url)
    name = f"{os.uname().nodename}-{os.getpid()}-{RealSecrets().secret()[:6]}"
    if parts.scheme in ("postgresql", "postgres"):
        from windlass.store.postgres.store import PostgresStore

        store = await PostgresStore.connect(
            url,
            name,
            pool_open=config.pool_open,
            pool_idle=config.pool_idle,
            lifetime_ms=config.pool_lifetime_ms,
            idle_ms=config.pool_idle_time_ms,
            notify_ms=config.notify_interval_ms,
        )
        await store.check_schema()
        return store
    if parts.scheme == "sqlite":
        path = Path(parts.path)
        make_private(path.parent)
        file = await open_held(path, RealClock(), blobs)
        await file.join()
        return file
    if parts.scheme == "memory":
        return MemoryStore(RealClock())
    expected = "sqlite:///path, postgresql://… or memory:"
    raise InvalidInput("store", expected, url)


async def upgrade_store(url: str) -> None:
    """Bring a PostgreSQL schema up to date; SQLite does so by itself."""
    if urlsplit(url).scheme in ("postgresql", "postgres"):
        from windlass.store.postgres.store import PostgresStore

        store = await PostgresStore.connect(url, f"upgrade-{os.getpid()}")
        try:
            await store.upgrade()
        finally:
            await store.close()
        return
    await (await open_store(url)).close()


async def begin_epoch_of(url: str, config: Config) -> Restored:
    """Tell a store that it was restored from a backup."""
    store = await open_store(url, config)
    engine = Engine(store, config, RealChance())
    try:
        await engine.start()
        return await engine.run(lambda work: begin_epoch(work, "db restored"))
    finally:
        await engine.close()
        await store.close()


async def verify_store(url: str, config: Config) -> Verified:
    """Check a store without a server."""
    store = await open_store(url, config)
    try:
        found = await verify(store, config)
    finally:
        await store.close()
    return Verified([ViolationInfo(v.invariant, v.message, v.job, v.seq) for v in found])


def open_blobs(url: str) -> Blobs:
    """`file:///directory`, `s3://bucket/prefix`, or `memory:`."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalBlobs(Path(parts.path))
    if parts.scheme == "s3":
        from windlass.blobs.s3 import S3Blobs

        return S3Blobs(parts.netloc, parts.path.strip("/"))
    if parts.scheme == "memory":
        return MemoryBlobs()
    raise InvalidInput("blobs", "file:///directory, s3://bucket/prefix or memory:", url)


class Works(NamedTuple):
    """An engine and what it works with; `duty` are its loops."""

    engine: Engine
    files: Files
    blobs: Blobs
    duty: Duty
    templates: Templates
    schedules: Schedules
    reactions: Reactions
    courier: Courier

    async def close(self) -> None:
        """Stop everything."""
        await self.duty.lay_down()
        await self.courier.close()
        await self.files.merging.close()
        await self.engine.close()
        await self.blobs.close()
        await self.engine.store.close()


def make_works(store: Store, blobs: str, config: Config, imports: Sequence[str] = ()) -> Works:
    """An engine over an open store; neither it nor its loops are started."""
    opened = open_blobs(blobs)
    engine = Engine(store, config, RealChance(), tasks=load_kinds(imports))

    planner = WirePlanner()
    networks = parse_networks(config.webhook_networks, "webhook_networks")
    courier = HttpCourier(RealClock(), config.webhook_timeout_ms, networks)
    schedules = Schedules(engine, planner)
    reactions = Reactions(engine, planner, courier)

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
            CapabilityLoop(engine),
        )

    duty = Duty(loops, RealClock(), config.drain_limit_ms)
    templates = Templates(engine, planner)
    files = Files(engine, opened)
    return Works(engine, files, opened, duty, templates, schedules, reactions, courier)


@asynccontextmanager
async def running_works(options: ServerOptions) -> AsyncIterator[Works]:
    """A started engine without its loops; everything is stopped in the end."""
    store = await open_store(options.store, options.config, options.blobs)
    works = make_works(store, options.blobs, options.config, options.imports)
    try:
        await works.engine.start()
        yield works
    finally:
        await works.close()


@asynccontextmanager
async def running_beside(options: ServerOptions) -> AsyncIterator[Works]:
    """What a worker beside its store has: the loops run only while no server is alive."""
    async with running_works(options) as works, standing_by(works):
        yield works


@asynccontextmanager
async def standing_by(works: Works) -> AsyncIterator[None]:
    """Look out for servers; on a store that nobody shares there is none."""
    if not works.engine.store.shared or works.engine.store.inline:
        works.duty.take_up()
        yield
        return
    standby = Ticker(Standby(works.engine, works.duty), RealClock())
    standby.start()
    try:
        yield
    finally:
        await standby.stop(works.engine.config.drain_limit_ms)


@asynccontextmanager
async def running_services(options: ServerOptions) -> AsyncIterator[Services]:
    """Everything a server answers with."""
    clock = RealClock()
    async with running_works(options) as works:
        engine = works.engine
        works.duty.take_up()
        meters = Meters()
        feed = Feed(engine.store, meters)
        tickers: list[Ticker[Any]] = [Ticker(feed, clock)]
        providers = partial(make_provider, place=options.data / POOLS, clock=clock)
        pools = Pools(engine, RealSecrets(), providers, address=options.address)
        sizing = Ticker(PoolsLoop(pools), clock)
        if options.address:
            tickers.append(sizing)
        if engine.store.shared and not engine.store.inline:
            tickers.append(Ticker(Presence(engine), clock))
        for ticker in tickers:
            ticker.start()
        try:
            yield Services(
                engine,
                works.files,
                Access(engine, RealSecrets()),
                feed,
                meters,
                clock,
                works.templates,
                works.schedules,
                works.reactions,
                pools,
                partial(sizing.stop, options.config.drain_limit_ms),
            )
        finally:
            for ticker in tickers:
                await ticker.stop(options.config.drain_limit_ms)


def make_private(directory: Path) -> None:
    """A directory only its owner can look into."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)


async def ensure_admin_token(services: Services, path: Path) -> str:
    """The admin token of this data directory; made the first time, readable by its owner."""
    known = _read_secret(path)
    if known and await services.access.identify(known) is not None:
        return known
    created = await services.access.create_token("admin", Role.ADMIN)
    _write_secret(path, created.secret)
    return created.secret


def _read_secret(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _write_secret(path: Path, secret: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)  # also where the file was there before
        file.write(secret + "\n")


def http_agent(transport: Transport, options: WorkerOptions) -> Agent:
    """An agent that talks to a server; whoever opened the transport closes it."""
    gateway = HttpGateway(transport, recall(options.state).token)
    executors = load_executors(imports=options.imports)
    return Agent(gateway, options, executors, RealClock(), RealChance())


def direct_agent(engine: Engine, files: Files, options: WorkerOptions) -> Agent:
    """An agent beside the store, with no server between."""
    gateway = DirectGateway(engine, files, submit=Children(engine).submit)
    executors = load_executors(imports=options.imports)
    return Agent(gateway, options, executors, RealClock(), RealChance())


def own_agent(engine: Engine, files: Files, options: WorkerOptions) -> Agent:
    """An agent inside a user's program: its functions find what the program can import."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    executors = load_executors()
    executors["python"] = PythonExecutor(env={"PYTHONPATH": path})
    add_named(executors)
    return Agent(
        DirectGateway(engine, files, submit=Children(engine).submit),
        options,
        executors,
        RealClock(),
        RealChance(),
    )
