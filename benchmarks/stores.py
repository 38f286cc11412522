"""Engines on stores, opened and closed for a benchmark."""

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import apsw

from benchmarks.fill import Group, fill_postgres, fill_sqlite
from tests.support.postgres import PostgresServer
from windlass.clock import RealChance, RealClock
from windlass.domain.config import Config
from windlass.engine.engine import Engine
from windlass.ports.clock import Clock
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.store import PostgresStore
from windlass.store.sqlite.store import SqliteStore

OpenFilled = Callable[[Sequence[Group]], AbstractAsyncContextManager[Engine]]


class StillClock:
    """A clock that stands, so that two runs write the same times."""

    def now_ms(self) -> int:
        return 1_700_000_000_000

    async def sleep_ms(self, duration_ms: int) -> None:
        raise RuntimeError(f"nothing may wait on a clock that stands, not even {duration_ms} ms")


@asynccontextmanager
async def open_sqlite(path: Path, clock: Clock) -> AsyncIterator[Engine]:
    """An engine on a new or existing file."""
    store = SqliteStore.open(path, clock)
    engine = Engine(store, Config(), RealChance())
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()
        await store.close()


@asynccontextmanager
async def filled_sqlite(folder: Path, groups: Sequence[Group]) -> AsyncIterator[Engine]:
    """An engine on a new file that is filled with `groups`, and removed afterwards."""
    clock = RealClock()
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        path = Path(inner) / "filled.db"
        async with open_sqlite(path, clock):
            pass
        fill_sqlite(path, groups, clock.now_ms())
        os.sync()  # so that what was filled is not written while others are timed
        async with open_sqlite(path, clock) as engine:
            yield engine


@asynccontextmanager
async def filled_postgres(server: PostgresServer, groups: Sequence[Group]) -> AsyncIterator[Engine]:
    """An engine on a new database that is filled with `groups`, and removed afterwards."""
    dsn = server.create_database()
    await prepare_postgres(dsn, groups)
    os.sync()
    async with open_postgres(dsn) as engine:
        yield engine
    server.drop_database(dsn)


@asynccontextmanager
async def open_postgres(dsn: str, server: str = "s1") -> AsyncIterator[Engine]:
    """An engine on a database that `prepare_postgres` has made."""
    store = await PostgresStore.connect(dsn, server)
    engine = Engine(store, Config(), RealChance())
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()
        await store.close()


async def prepare_postgres(dsn: str, groups: Sequence[Group]) -> None:
    """Make the tables and fill them."""
    store = await PostgresStore.connect(dsn)
    await store.upgrade()
    await store.close()
    connection = await open_connection(dsn)
    await fill_postgres(connection, groups, RealClock().now_ms())
    await connection.close()


def sqlite_writer(engine: Engine) -> apsw.Connection:
    """The connection on which an engine's store writes, to be watched."""
    assert isinstance(engine.store, SqliteStore)
    return engine.store.writer
