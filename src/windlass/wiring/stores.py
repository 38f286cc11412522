"""Opens stores and blobs by their address."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from windlass.blobs.local import LocalBlobs
from windlass.blobs.memory import MemoryBlobs
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput
from windlass.engine.engine import Engine
from windlass.engine.fleet.epochs import Restored, begin_epoch
from windlass.engine.verify import verify
from windlass.ports.blobs import Blobs
from windlass.ports.store import Store
from windlass.store.memory.store import MemoryStore
from windlass.store.sqlite.opening import open_held
from windlass.wire.system import Verified, ViolationInfo


async def open_store(
    url: str,
    config: Config = Config(),  # noqa: B008 - frozen
    blobs: str = "",
) -> Store:
    """Opens `sqlite:///path`, `postgresql://…` or `memory:`; other processes learn of `blobs`."""
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
    """Upgrades a PostgreSQL schema; SQLite upgrades itself when opened."""
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
    """Marks a store as restored from a backup."""
    store = await open_store(url, config)
    engine = Engine(store, config, RealChance())
    try:
        await engine.start()
        return await engine.run(lambda work: begin_epoch(work, "db restored"))
    finally:
        await engine.close()
        await store.close()


async def verify_store(url: str, config: Config) -> Verified:
    """Checks a store without a server."""
    store = await open_store(url, config)
    try:
        found = await verify(store, config)
    finally:
        await store.close()
    return Verified([ViolationInfo(v.invariant, v.message, v.job, v.seq) for v in found])


def open_blobs(url: str) -> Blobs:
    """Opens `file:///directory`, `s3://bucket/prefix` or `memory:`."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalBlobs(Path(parts.path))
    if parts.scheme == "s3":
        from windlass.blobs.s3 import S3Blobs

        return S3Blobs(parts.netloc, parts.path.strip("/"))
    if parts.scheme == "memory":
        return MemoryBlobs()
    raise InvalidInput("blobs", "file:///directory, s3://bucket/prefix or memory:", url)


def make_private(directory: Path) -> None:
    """Creates a directory that only its owner can read."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
