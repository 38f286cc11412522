"""The three kinds of store that a rig can stand on."""

from pathlib import Path

from tests.engine.support.rig import Base
from tests.store.conformance.driver import START_MS, SettableClock
from tests.support import saved_tables
from windlass.store.postgres.store import PostgresStore
from windlass.store.sqlite.memory import MemoryStore
from windlass.store.sqlite.store import SqliteStore
from windlass.store.store import Store


class MemoryBase(Base):
    kind = "memory"

    def __init__(self) -> None:
        self._clock = SettableClock()
        self._first: MemoryStore | None = None

    async def open(self, server: str) -> Store:
        if self._first is None:
            self._first = MemoryStore(self._clock, server)
            return self._first
        return self._first.attach(server)

    async def set_clock(self, ms: int) -> None:
        self._clock.ms = ms


class SqliteBase(Base):
    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self._clock = SettableClock()
        self._path = path

    async def open(self, server: str) -> Store:
        return SqliteStore.open(self._path, self._clock, server=server)

    async def set_clock(self, ms: int) -> None:
        self._clock.ms = ms


class PostgresBase(Base):
    """One database for all tests of a session, which was emptied before.

    What it has to say to the database goes through a connection of the store's own pool:
    a new connection costs more than the rest of a small test.
    """

    kind = "postgres"

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._store: PostgresStore | None = None

    async def open(self, server: str) -> Store:
        is_first = self._store is None
        self._store = await PostgresStore.connect(self._dsn, server=server)
        if is_first:
            await self.set_clock(START_MS)
        return self._store

    async def set_clock(self, ms: int) -> None:
        await self._execute("UPDATE injected_clock SET at = $1", ms)

    async def _execute(self, statement: str, *args: object) -> None:
        assert self._store is not None
        async with self._store.connection() as connection:
            await connection.execute(statement, *args)


async def migrate(dsn: str) -> None:
    """Give a new database its schema, and a clock that tests set."""
    store = await PostgresStore.connect(dsn, server="migrating")
    await store.upgrade()
    await store.set_clock(START_MS)
    async with store.connection() as connection:
        await saved_tables.install(connection)
    await store.close()
