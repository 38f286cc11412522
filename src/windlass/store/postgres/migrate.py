"""Upgrades a database to the schema that this code expects, or reports an older one.

The schema has a version. The functions have none: they are created or replaced whenever their
text differs from what was applied last. So a function may change between versions only if servers
of the older code can still call it; new parameters or results need a new version.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, Final

import asyncpg

from windlass.domain.values.addresses import without_password
from windlass.domain.values.errors import Conflict
from windlass.store.postgres.session import QUERIES
from windlass.store.sql.queries import FIRST_VERSION, Step, latest, load_steps, read_sql

PACKAGE: Final = "windlass.store.postgres"
FUNCTIONS: Final = f"{PACKAGE}.functions"
STEPS: Final = load_steps(f"{PACKAGE}.migrations")
OLDEST: Final = 15  # version of PostgreSQL


def check(found: int, address: str, steps: tuple[Step, ...] = STEPS) -> None:
    """Raises `Conflict` unless a database at version `found` is what this code expects.

    `address` is the database's address, for the command in the message.
    """
    expected = latest(steps)
    if found < expected:
        raise Conflict(
            "schema_outdated",
            f"the database has schema version {found}, this windlass needs version {expected}; "
            f"run `windlass db upgrade --store {without_password(address)}`",
        )
    _refuse_newer(found, expected)


async def applied(connection: "asyncpg.Connection[Any]") -> int:
    """Returns the version of this database, 0 if it was never prepared."""
    if not await connection.fetchval(QUERIES["has_migrations"]):
        return 0
    return int(await connection.fetchval(QUERIES["schema_version"]))


async def upgrade(
    connection: "asyncpg.Connection[Any]", steps: tuple[Step, ...] = STEPS, oldest: int = OLDEST
) -> None:
    """Applies the missing steps, all or nothing; an empty database gets the whole schema.

    Raises `Conflict` for a version of PostgreSQL before `oldest`.
    """
    found = connection.get_server_version()
    if found.major < oldest:
        message = (
            f"this is PostgreSQL {found.major}, Windlass needs version {oldest} or a newer one"
        )
        raise Conflict("postgres_too_old", message)
    async with connection.transaction():
        await connection.execute(QUERIES["lock_migrations"])
        await connection.execute(QUERIES["create_schema"])
        await connection.execute(QUERIES["create_migrations"])
        version = await applied(connection)
        _refuse_newer(version, latest(steps))
        if version < FIRST_VERSION:
            await connection.execute(read_sql(PACKAGE, "schema.sql"))
            await connection.execute(QUERIES["note_migration"], FIRST_VERSION, "schema")
        for step in steps:
            if step.version > version:
                if version:  # `schema.sql` already includes the change
                    await connection.execute(step.sql)
                await connection.execute(QUERIES["note_migration"], step.version, step.name)
        await _apply_functions(connection)


async def apply_functions(connection: "asyncpg.Connection[Any]") -> None:
    """Creates or replaces the functions if their text has changed, all or nothing."""
    async with connection.transaction():
        await connection.execute(QUERIES["lock_migrations"])
        await _apply_functions(connection)


async def _apply_functions(connection: "asyncpg.Connection[Any]") -> None:
    if await connection.fetchval(QUERIES["functions_digest"]) == functions_digest():
        return
    for text in function_files().values():
        await connection.execute(text)
    # A comment takes no parameters; the digest is hexadecimal.
    await connection.execute(QUERIES["note_functions"].replace("DIGEST", functions_digest()))


@cache
def function_files() -> dict[str, str]:
    """Returns the text of each file in functions/, by name."""
    names = sorted(entry.name for entry in files(FUNCTIONS).iterdir())
    return {name: read_sql(FUNCTIONS, name) for name in names if name.endswith(".sql")}


@cache
def functions_digest() -> str:
    """Returns a digest of all functions, which shows whether they have changed."""
    text = "\n".join(function_files().values())
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse_newer(found: int, expected: int) -> None:
    if found > expected:
        raise Conflict(
            "schema_too_new",
            f"the database has schema version {found}, this windlass knows version {expected}; "
            "install a newer windlass",
        )
