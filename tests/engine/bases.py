"""The three kinds of store that a rig can stand on."""

import asyncio
from pathlib import Path

import asyncpg

from tests.conformance.driver import START_MS, SettableClock
from tests.engine.rig import Base
from windlass.ports.store import Store
from windlass.store.memory.store import MemoryStore
from windlass.store.postgres.store import PostgresStore
from windlass.store.sqlite.store import SqliteStore

# Everything but the clock and the record of migrations, so that one database serves all.
EMPTY = """
DO $$
DECLARE found text;
BEGIN
    SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') INTO found FROM pg_tables
    WHERE schemaname = 'windlass' AND tablename NOT IN ('migrations', 'injected_clock');
    EXECUTE 'TRUNCATE ' || found;
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
    """One database for all tests of a session, emptied before each."""

    kind = "postgres"

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._helper: asyncpg.Connection[asyncpg.Record] | None = None
        self._turn = asyncio.Lock()

    async def open(self, server: str) -> Store:
        store = await PostgresStore.connect(self._dsn, server=server)
        if self._helper is None:
            self._helper = await asyncpg.connect(self._dsn)
            await self._helper.execute(EMPTY)
            await store.set_clock(START_MS)
        return store

    async def set_clock(self, ms: int) -> None:
        assert self._helper is not None
        # `set_clock` of the store also replaces a function; once is enough.
        async with self._turn:
            await self._helper.execute("UPDATE windlass.injected_clock SET at = $1", ms)

    async def close(self) -> None:
        if self._helper is not None:
            await self._helper.close()


async def migrate(dsn: str) -> None:
    """Give a new database its schema."""
    store = await PostgresStore.connect(dsn, server="migrating")
    await store.upgrade()
    await store.close()
