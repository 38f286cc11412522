"""Bring a database file to the schema of today, by itself, when it is opened."""

import re
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import apsw

from windlass.store.sql import read_sql
from windlass.store.sqlite.faults import refusal
from windlass.store.sqlite.statements import QUERIES

_FOLDER = "windlass.store.sqlite.migrations"
_FILE = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")


class Migration(NamedTuple):
    version: int
    filename: str


def migrations() -> list[Migration]:
    """All steps, in order; their numbers run from 1 without a gap."""
    names = sorted(entry.name for entry in files(_FOLDER).iterdir())
    steps = [Migration(int(match[1]), match[0]) for name in names if (match := _FILE.match(name))]
    if [step.version for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"expected migrations numbered from 1 without a gap, got {names}")
    return steps


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Give a new file the whole schema, and an older one the steps it lacks."""
    version = schema_version(connection)
    latest = len(migrations())
    if version == latest:
        return
    if version > latest:
        raise refusal(
            "store_too_new",
            f"expected {path} to have schema {latest} or older, got {version}; "
            "start the newer Windlass that made it, or restore a backup from before",
        )
    connection.execute(QUERIES["begin"])
    try:
        version = schema_version(connection)  # another process may have been faster
        if version == latest:
            pass
        elif version == 0:
            _refuse_foreign(connection, path)
            create(connection)
        else:
            upgrade(connection, version)
        connection.execute(QUERIES["commit"])
    except BaseException:
        connection.execute(QUERIES["roll_back"])
        raise


def schema_version(connection: apsw.Connection) -> int:
    """How many migrations a file has seen."""
    return int(connection.pragma("user_version"))


def create(connection: apsw.Connection) -> None:
    """The schema as a new file gets it."""
    connection.execute(read_sql("windlass.store.sqlite", "schema.sql"))
    connection.pragma("user_version", len(migrations()))


def upgrade(connection: apsw.Connection, version: int) -> None:
    """The steps after `version`, in order."""
    for step in migrations()[version:]:
        connection.execute(read_sql(_FOLDER, step.filename))
        connection.pragma("user_version", step.version)


def _refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    found = connection.execute(QUERIES["any_table"]).fetchone()
    if found is not None:
        raise refusal(
            "store_foreign",
            f"expected {path} to be empty or a Windlass database, got another one "
            f"with {found[0]!r} in it; name another file",
        )
