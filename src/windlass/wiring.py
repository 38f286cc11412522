"""The only place where implementations are chosen: stores, blobs, clocks, gateways."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from windlass.blobs.local import LocalBlobs
from windlass.blobs.memory import MemoryBlobs
from windlass.client.gateway import HttpGateway
from windlass.client.transport import Transport
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.config import Config
from windlass.domain.errors import InvalidInput
from windlass.domain.roles import Role
from windlass.engine.access import Access
from windlass.engine.engine import Engine
from windlass.engine.files import Files
from windlass.engine.loops.cleanup import CleanupLoop
from windlass.engine.loops.health import HealthLoop
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.loops.scheduling import SchedulingLoop
from windlass.engine.loops.ticker import Ticker
from windlass.executors import load_executors, load_kinds
from windlass.ports.blobs import Blobs
from windlass.ports.store import Store
from windlass.server.feed import Feed
from windlass.server.metrics import Meters
from windlass.server.services import Services
from windlass.store.memory.store import MemoryStore
from windlass.store.sqlite.store import SqliteStore
from windlass.worker.agent import Agent
from windlass.worker.direct import DirectGateway
from windlass.worker.options import WorkerOptions
from windlass.worker.state import recall


class ServerOptions(NamedTuple):
    """Where a server keeps things."""

    store: str
    blobs: str
    config: Config = Config()


async def open_store(url: str) -> Store:
    """`sqlite:///path`, `postgresql://…`, or `memory:`."""
    parts = urlsplit(url)
    name = f"{os.uname().nodename}-{os.getpid()}-{RealSecrets().secret()[:6]}"
    if parts.scheme in ("postgresql", "postgres"):
        from windlass.store.postgres.store import PostgresStore

        store = await PostgresStore.connect(url, name)
        await store.check_schema()
        return store
    if parts.scheme == "sqlite":
        path = Path(parts.path)
        make_private(path.parent)
        return SqliteStore.open(path, RealClock(), server="s1")
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


@asynccontextmanager
async def running_engine(
    options: ServerOptions, loops: bool = True
) -> AsyncIterator[tuple[Engine, Files, Blobs]]:
    """A started engine with its loops; everything is stopped in the end."""
    clock = RealClock()
    store = await open_store(options.store)
    blobs = open_blobs(options.blobs)
    engine = Engine(store, options.config, RealChance(), tasks=load_kinds())
    files = Files(engine, blobs)
    tickers = [
        Ticker(loop, clock)
        for loop in (
            SchedulingLoop(engine),
            HealthLoop(engine),
            CleanupLoop(engine),
            RetentionLoop(engine, blobs),
        )
    ]
    try:
        await engine.start()
        if loops:
            for ticker in tickers:
                ticker.start()
        yield engine, files, blobs
    finally:
        for ticker in tickers:
            await ticker.stop(options.config.drain_limit_ms)
        await engine.close()
        await blobs.close()
        await store.close()


@asynccontextmanager
async def running_services(options: ServerOptions) -> AsyncIterator[Services]:
    """Everything a server answers with."""
    clock = RealClock()
    async with running_engine(options) as (engine, files, _):
        meters = Meters()
        feed = Feed(engine.store, meters)
        ticker = Ticker(feed, clock)
        ticker.start()
        try:
            yield Services(engine, files, Access(engine, RealSecrets()), feed, meters, clock)
        finally:
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


def http_agent(server: str, token: str | None, options: WorkerOptions) -> Agent:
    """An agent that talks to a server."""
    gateway = HttpGateway(Transport(server, token), recall(options.state).token)
    return Agent(gateway, options, load_executors(), RealClock(), RealChance())


def direct_agent(engine: Engine, files: Files, options: WorkerOptions) -> Agent:
    """An agent beside the store, with no server between."""
    gateway = DirectGateway(engine, files)
    return Agent(gateway, options, load_executors(), RealClock(), RealChance())
