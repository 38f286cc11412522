"""Brings a database file to the schema this code expects when the file is opened."""

from pathlib import Path
from typing import Final

import apsw

from windlass.store.migrations import Step, latest, load_steps
from windlass.store.sql.queries import read_sql
from windlass.store.sqlite.faults import refusal
from windlass.store.sqlite.statements import QUERIES

STEPS: Final = load_steps("windlass.store.sqlite.migrations")


def migrate(connection: apsw.Connection, path: Path, steps: tuple[Step, ...] = STEPS) -> None:
    """Gives a new file the whole schema, and an older one the steps it lacks."""
    version, newest = schema_version(connection), latest(steps)
    if version == newest:
        return
    if version > newest:
        raise refusal(
            "store_too_new",
            f"{path} has schema version {version}, this windlass knows version {newest}; "
            "install a newer windlass, or restore an older backup",
        )
    connection.execute(QUERIES["begin"])
    try:
        version = schema_version(connection)  # another process may have been faster
        if version == newest:
            pass
        elif version == 0:
            _refuse_foreign(connection, path)
            create(connection, newest)
        else:
            upgrade(connection, steps[version - newest :])
        connection.execute(QUERIES["commit"])
    except BaseException:
        connection.execute(QUERIES["roll_back"])
        raise


def schema_version(connection: apsw.Connection) -> int:
    """Returns the version of a file, 0 if it is new."""
    return int(connection.pragma("user_version"))


def create(connection: apsw.Connection, version: int = latest(STEPS)) -> None:
    """Creates the schema in a new file."""
    connection.execute(read_sql("windlass.store.sqlite", "schema.sql"))
    connection.pragma("user_version", version)


def upgrade(connection: apsw.Connection, steps: tuple[Step, ...]) -> None:
    """Applies these steps, in order."""
    for step in steps:
        connection.execute(step.sql)
        connection.pragma("user_version", step.version)


def _refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    found = connection.execute(QUERIES["any_table"]).fetchone()
    if found is not None:
        raise refusal(
            "store_foreign",
            f"{path} is a database of another program (it contains {found[0]!r}); "
            "choose another file",
        )
