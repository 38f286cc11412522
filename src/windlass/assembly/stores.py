"""Opens stores and blobs by their address."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from windlass.blobs.local import LocalBlobs
from windlass.blobs.memory import MemoryBlobs
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput, needs
from windlass.engine.engine import Engine
from windlass.engine.fleet.epochs import Restored, restored
from windlass.messages.system import Verified
from windlass.operations.installation import check
from windlass.plugins import added
from windlass.ports.blobs import Blobs
from windlass.store.sqlite.memory import MemoryStore
from windlass.store.sqlite.store import SqliteStore, open_held
from windlass.store.store import Store

if TYPE_CHECKING:
    from windlass.store.postgres.store import PostgresStore


class Opening(NamedTuple):
    """How to open a store."""

    blobs: str = ""  # announced to other processes
    wait_ms: int = 0  # for PostgreSQL to accept connections
    stopped: Callable[[], bool] = lambda: False  # ends the wait
    restored: bool = False  # a restored backup may have no new epoch yet


async def open_store(
    url: str,
    config: Config = Config(),  # noqa: B008 - frozen
    opening: Opening = Opening(),  # noqa: B008 - frozen
) -> Store:
    """Opens `sqlite:///path`, `postgresql://…` or `memory:`."""
    parts = urlsplit(url)
    if is_postgres(url):
        return await _open_postgres(url, config, opening)
    if parts.scheme == "sqlite":
        path = Path(parts.path)
        make_private(path.parent)
        file = await open_held(path, RealClock(), opening.blobs, opening.restored)
        await file.join()
        return file
    if parts.scheme == "memory":
        return MemoryStore(RealClock())
    expected = "sqlite:///path, postgresql://… or memory:"
    raise InvalidInput("store", expected, url)


def is_postgres(url: str) -> bool:
    """Returns whether an address is one of PostgreSQL."""
    return urlsplit(url).scheme in ("postgresql", "postgres")


async def _open_postgres(url: str, config: Config, opening: Opening) -> "PostgresStore":
    with needs("postgres"):
        from windlass.store.postgres.store import PostgresStore, open_patiently

    name = f"{os.uname().nodename}-{os.getpid()}-{RealSecrets().secret()[:6]}"

    async def connect() -> PostgresStore:
        return await PostgresStore.connect(
            url,
            name,
            pool_open=config.pool_open,
            pool_idle=config.pool_idle,
            lifetime_ms=config.pool_lifetime_ms,
            idle_ms=config.pool_idle_time_ms,
            notify_ms=config.notify_interval_ms,
        )

    return await open_patiently(connect, opening.wait_ms, opening.stopped, opening.restored)


async def upgrade_store(url: str) -> None:
    """Upgrades a PostgreSQL schema; SQLite upgrades itself when opened."""
    if is_postgres(url):
        with needs("postgres"):
            from windlass.store.postgres.store import PostgresStore

        store = await PostgresStore.connect(url, f"upgrade-{os.getpid()}")
        try:
            await store.upgrade()
        finally:
            await store.close()
        return
    await (await open_store(url, opening=Opening(restored=True))).close()


async def begin_epoch_of(url: str, config: Config, own_settings: bool) -> Restored:
    """Begins a new epoch in a store that was restored from a backup.

    Without `own_settings`, jobs are held back by the settings of the server that started last.
    """
    store = await open_store(url, config, Opening(restored=True))
    engine = Engine(store, config, RealChance())
    try:
        await engine.start()
        begun = await engine.run(lambda work: restored(work, "db restored", own_settings))
        await _accept(store)
        return begun
    finally:
        await engine.close()
        await store.close()


async def _accept(store: Store) -> None:
    """Accepts a restored store as the one to continue."""
    if isinstance(store, SqliteStore):
        store.note_newest()
    elif not isinstance(store, MemoryStore):
        from windlass.store.postgres.store import PostgresStore

        if isinstance(store, PostgresStore):
            await store.note_identity()


async def verify_store(url: str, config: Config) -> Verified:
    """Checks a store without a server."""
    store = await open_store(url, config, Opening(restored=True))
    try:
        if isinstance(store, SqliteStore):
            store.check_file()
        return await check(store, config)
    finally:
        await store.close()


def open_blobs(url: str) -> Blobs:
    """Opens `file:///directory`, `s3://bucket/prefix` or `memory:`."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalBlobs(Path(parts.path))
    if parts.scheme == "s3":
        with needs("s3"):
            from windlass.blobs.s3 import S3Blobs

        return S3Blobs(parts.netloc, parts.path.strip("/"))
    if parts.scheme == "memory":
        return MemoryBlobs()
    others = {one.name: one for one in added("blobs")}
    if parts.scheme in others:
        opened: Blobs = others[parts.scheme].load()(url)
        return opened
    expected = "file:///directory, s3://bucket/prefix or memory:"
    raise InvalidInput("blobs", ", ".join((expected, *(f"{one}:" for one in others))), url)


def make_private(directory: Path) -> None:
    """Creates a directory that only its owner can read."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
