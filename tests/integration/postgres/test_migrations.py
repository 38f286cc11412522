"""The schema: both ways to it end the same, and the code refuses any other."""

import re
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.conftest import OpenStore
from tests.support.postgres import PostgresServer
from tests.support.running import run
from windlass.domain.lifecycle.states import TRANSITION_CODES
from windlass.domain.values.errors import Conflict
from windlass.ports.store import Tx
from windlass.store.postgres import migrate
from windlass.store.postgres.pool import open_connection
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql import read_sql

CATALOG = {
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
               a.attnotnull, a.attstorage, pg_get_expr(d.adbin, d.adrelid), l.collname
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        LEFT JOIN pg_collation l ON l.oid = a.attcollation
        WHERE c.relnamespace = 'windlass'::regnamespace AND a.attnum > 0
        ORDER BY 1, 2""",
    "relations": """
        SELECT relname, relkind, reloptions FROM pg_class
        WHERE relnamespace = 'windlass'::regnamespace ORDER BY 1""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'windlass'::regnamespace ORDER BY 1, 2""",
    "indexes": """
        SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'windlass' ORDER BY 1""",
    "functions": """
        SELECT proname, pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = 'windlass'::regnamespace ORDER BY 1""",
    "sequences": """
        SELECT sequencename, start_value, increment_by, cache_size, cycle FROM pg_sequences
        WHERE schemaname = 'windlass' ORDER BY 1""",
    "migrations": "SELECT number, name FROM windlass.migrations ORDER BY 1",
}


async def describe(connection: "asyncpg.Connection[Any]") -> dict[str, list[tuple[object, ...]]]:
    return {name: [tuple(row) for row in await connection.fetch(q)] for name, q in CATALOG.items()}


async def upgraded(dsn: str, step_by_step: bool) -> dict[str, list[tuple[object, ...]]]:
    connection = await open_connection(dsn)
    try:
        await migrate.upgrade(connection, step_by_step)
        return await describe(connection)
    finally:
        await connection.close()


def test_the_migrated_schema_equals_the_fresh_one(postgres_server: PostgresServer) -> None:
    fresh, migrated = postgres_server.create_database(), postgres_server.create_database()
    expected = run(upgraded(fresh, step_by_step=False))
    assert run(upgraded(migrated, step_by_step=True)) == expected
    assert all(expected.values())
    for dsn in (fresh, migrated):
        postgres_server.drop_database(dsn)


def test_an_upgrade_goes_on_from_what_was_applied(postgres_dsn: str) -> None:
    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        first = migrate.migrations()[0]
        async with connection.transaction():
            await connection.execute("CREATE SCHEMA windlass")
            await connection.execute("CREATE TABLE migrations (number int PRIMARY KEY, name text)")
            await connection.execute(read_sql("windlass.store.postgres.migrations", first.file))
            await connection.execute("INSERT INTO migrations VALUES (1, 'initial')")
        await migrate.upgrade(connection)
        assert await migrate.applied(connection) == [m.number for m in migrate.migrations()]
        assert await connection.fetchval("SELECT windlass_now()") > 0
        await connection.close()

    run(check())


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [migration.number for migration in migrate.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_an_unprepared_database_is_refused_by_name_of_the_way_out(postgres_dsn: str) -> None:
    async def check() -> None:
        store = await PostgresStore.connect(postgres_dsn)
        newest = migrate.migrations()[-1].number
        for call in (store.check_schema, store.snapshot):
            with pytest.raises(
                Conflict, match=rf"version {newest}, got 0; run `windlass db upgrade`"
            ):
                await call()
        await store.upgrade()
        await store.upgrade()
        await store.check_schema()
        await store.close()

    run(check())


def test_a_newer_database_is_refused(postgres_dsn: str, open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store():
            connection = await open_connection(postgres_dsn)
            await connection.execute("INSERT INTO migrations VALUES (9999, 'of_tomorrow')")
            await connection.close()
        store = await PostgresStore.connect(postgres_dsn)
        with pytest.raises(Conflict, match="got 9999; install a newer windlass"):
            await store.check_schema()
        await store.close()

    run(check())


def test_the_database_knows_exactly_the_domain_s_transitions(
    postgres_dsn: str, open_store: OpenStore
) -> None:
    async def check() -> None:
        async with open_store():
            connection = await open_connection(postgres_dsn)
            text = await connection.fetchval(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
                " WHERE conname = 'events_transition'"
            )
            await connection.close()
        pairs = {divmod(int(code), 16) for code in re.findall(r"\d+", text.split("ARRAY")[1])}
        assert pairs == TRANSITION_CODES

    run(check())


def test_the_clock_can_be_set_for_all_servers_and_given_back(
    postgres_dsn: str, open_store: OpenStore
) -> None:
    async def now(tx: Tx) -> int:
        return tx.now

    async def check() -> None:
        async with open_store("s1") as one, open_store("s2") as two:
            connection = await open_connection(postgres_dsn)
            before = await describe(connection)
            assert await two.transact(now) > 1_700_000_000_000
            await one.set_clock(5_000_000_000_000)
            assert await one.transact(now) == await two.read(now) == 5_000_000_000_000
            await one.set_clock(5_000_000_000_001)
            assert await two.transact(now) == 5_000_000_000_001
            await one.set_clock(None)
            assert await one.transact(now) < 5_000_000_000_000
            assert await describe(connection) == before
            await connection.close()

    run(check())
