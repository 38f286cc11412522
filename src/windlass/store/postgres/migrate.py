"""Bring a database to the schema this code expects, or say that it is not there yet."""

import re
from importlib.resources import files
from typing import Any, NamedTuple

import asyncpg

from windlass.domain.values.errors import Conflict
from windlass.store.postgres.session import QUERIES
from windlass.store.sql import read_sql

PACKAGE = "windlass.store.postgres"
_FILE = re.compile(r"^(\d{4})_([a-z_]+)\.sql$")


class Migration(NamedTuple):
    """One numbered file."""

    number: int
    name: str
    file: str


def migrations() -> list[Migration]:
    """All of them, in the order in which they are applied."""
    names = (entry.name for entry in files(PACKAGE).joinpath("migrations").iterdir())
    matches = (_FILE.match(name) for name in sorted(names))
    return [Migration(int(m[1]), m[2], m[0]) for m in matches if m]


def check(found: int) -> None:
    """Raise unless a database at version `found` is what this code was written for."""
    expected = migrations()[-1].number
    if found == expected:
        return
    code, way = (
        ("schema_outdated", "run `windlass db upgrade`")
        if found < expected
        else ("schema_too_new", "install a newer windlass")
    )
    raise Conflict(code, f"expected the database at schema version {expected}, got {found}; {way}")


async def applied(connection: "asyncpg.Connection[Any]") -> list[int]:
    """The numbers of the migrations this database has seen."""
    if not await connection.fetchval(QUERIES["has_migrations"]):
        return []
    return [row[0] for row in await connection.fetch(QUERIES["migrations"])]


async def upgrade(connection: "asyncpg.Connection[Any]", step_by_step: bool = False) -> None:
    """Apply what is missing, all or nothing; a database without tables gets the whole schema.

    `step_by_step` applies the numbered files to a new database as well: a test proves that
    both ways end the same.
    """
    async with connection.transaction():
        await connection.execute(QUERIES["lock_migrations"])
        await connection.execute(QUERIES["create_schema"])
        await connection.execute(QUERIES["create_migrations"])
        done = await applied(connection)
        if not done and not step_by_step:
            for file in ("schema.sql", "functions.sql"):
                await connection.execute(read_sql(PACKAGE, file))
        for migration in migrations():
            if migration.number not in done:
                if done or step_by_step:
                    await connection.execute(read_sql(f"{PACKAGE}.migrations", migration.file))
                await connection.execute(
                    QUERIES["note_migration"], migration.number, migration.name
                )
