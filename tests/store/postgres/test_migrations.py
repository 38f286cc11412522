"""The schema has a version, functions are replaced when they change; others are refused."""

import re
from typing import Any

import asyncpg
import pytest

from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.domain.lifecycle.states import TRANSITION_CODES
from windlass.domain.values.errors import Conflict
from windlass.store.postgres import migrate
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.queries import FIRST_VERSION, Step
from windlass.store.sql.transaction import ReadTx

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


SECOND = (Step(2, "notes", "CREATE TABLE notes (note text)"),)
THIRD = Step(3, "numbers", "ALTER TABLE notes ADD COLUMN number integer DEFAULT 3")


def test_a_database_of_version_1_is_accepted_and_gets_the_steps_it_lacks(
    postgres_dsn: str,
) -> None:
    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        await migrate.upgrade(connection)
        assert await migrate.applied(connection) == FIRST_VERSION
        migrate.check(FIRST_VERSION, postgres_dsn)
        await migrate.upgrade(connection, SECOND)
        await connection.execute("INSERT INTO notes VALUES ('two')")
        await migrate.upgrade(connection, (*SECOND, THIRD))
        assert await migrate.applied(connection) == 3
        assert [tuple(row) for row in await connection.fetch("SELECT * FROM notes")] == [("two", 3)]
        await connection.close()

    run(check())


def test_a_new_database_gets_no_steps(postgres_dsn: str) -> None:
    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        await migrate.upgrade(connection, (*SECOND, THIRD))
        assert await migrate.applied(connection) == 3
        assert await connection.fetchval("SELECT to_regclass('notes')") is None
        await connection.close()

    run(check())


def test_a_step_that_fails_changes_nothing(postgres_dsn: str) -> None:
    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        await migrate.upgrade(connection)
        before = await describe(connection)
        broken = Step(2, "broken", "CREATE TABLE notes (note text); CREATE TABLE jobs (id int)")
        with pytest.raises(asyncpg.DuplicateTableError):
            await migrate.upgrade(connection, (broken,))
        assert await describe(connection) == before
        await connection.close()

    run(check())


def test_functions_are_replaced_when_their_text_has_changed(
    postgres_dsn: str, open_store: OpenStore
) -> None:
    async def check() -> None:
        async with open_store():
            pass
        connection = await open_connection(postgres_dsn)
        before = await describe(connection)
        await connection.execute(
            "CREATE OR REPLACE FUNCTION probes_cover_ready(shapes integer[], ranks bigint[],"
            " jobs bigint[]) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT true'"
        )
        altered = await describe(connection)
        assert altered != before
        await migrate.upgrade(connection)
        assert await describe(connection) == altered  # the digest says that nothing has changed
        await connection.execute("COMMENT ON TABLE migrations IS 'of another release'")
        store = await PostgresStore.connect(postgres_dsn)
        await store.check_schema()  # what a server does when it starts
        await store.close()
        assert await describe(connection) == before
        await connection.execute("COMMENT ON TABLE migrations IS 'of another release'")
        await connection.execute("DROP FUNCTION probes_cover_ready")
        await migrate.upgrade(connection)
        assert await describe(connection) == before
        await connection.close()

    run(check())


def test_an_unprepared_database_is_refused_by_name_of_the_way_out(postgres_dsn: str) -> None:
    async def check() -> None:
        store = await PostgresStore.connect(postgres_dsn)
        for call in (store.check_schema, store.snapshot):
            with pytest.raises(
                Conflict,
                match=r"version 0, .* version 1; run `windlass db upgrade --store postgresql://",
            ):
                await call()
        await store.upgrade()
        await store.upgrade()
        await store.check_schema()
        await store.close()

    run(check())


def test_an_old_postgresql_is_refused_before_anything_is_made(postgres_dsn: str) -> None:
    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        with pytest.raises(Conflict, match=r"this is PostgreSQL \d+, Windlass needs version 99 or"):
            await migrate.upgrade(connection, oldest=99)
        assert await migrate.applied(connection) == 0
        await connection.close()

    run(check())


def test_a_newer_database_is_refused(postgres_dsn: str, open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store():
            connection = await open_connection(postgres_dsn)
            await connection.execute("INSERT INTO migrations VALUES (9999, 'of_tomorrow')")
            await connection.close()
        store = await PostgresStore.connect(postgres_dsn)
        for call in (store.check_schema, store.upgrade):
            with pytest.raises(Conflict, match=r"version 9999, .* install a newer windlass"):
                await call()
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
        (codes,) = re.findall(r"\{([0-9,]+)\}", text)
        pairs = {divmod(int(code), 16) for code in codes.split(",")}
        assert pairs == TRANSITION_CODES

    run(check())


def test_the_clock_can_be_set_for_all_servers_and_given_back(
    postgres_dsn: str, open_store: OpenStore
) -> None:
    async def now(tx: ReadTx) -> int:
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
