"""The three kinds of store that a rig can stand on."""

from pathlib import Path

from tests.engine.support.rig import Base
from tests.store.conformance.driver import START_MS, SettableClock
from windlass.ports.store import Store
from windlass.store.memory.store import MemoryStore
from windlass.store.postgres.store import PostgresStore
from windlass.store.sqlite.store import SqliteStore

# Everything but the clock and the record of migrations, so that one database serves all
# tests; on tables this small DELETE is a hundred times faster than TRUNCATE.
EMPTY = """
DO $$
DECLARE found text;
BEGIN
    FOR found IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
        WHERE schemaname = 'windlass' AND tablename NOT IN ('migrations', 'injected_clock')
    LOOP
        EXECUTE 'DELETE FROM ' || found;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE schemaname = 'windlass';
END $$
"""


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
    """One database for all tests of a session, emptied before each.

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
            await self._execute(EMPTY)
            await self.set_clock(START_MS)
        return self._store

    async def set_clock(self, ms: int) -> None:
        await self._execute("UPDATE injected_clock SET at = $1", ms)

    async def _execute(self, statement: str, *args: object) -> None:
        assert self._store is not None
        pool = self._store._pool
        link = await pool.acquire()
        await link.connection.execute(statement, *args)
        pool.release(link)


async def migrate(dsn: str) -> None:
    """Give a new database its schema, and a clock that tests set."""
    store = await PostgresStore.connect(dsn, server="migrating")
    await store.upgrade()
    await store.set_clock(START_MS)
    await store.close()
