"""An old file becomes what a new one is, and a newer one is refused."""

import re
from pathlib import Path

import apsw
import pytest

from tests.integration.sqlite.driving import close, open_store, transact
from windlass.domain.lifecycle.states import TRANSITION_CODES
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql import read_sql
from windlass.store.sqlite.migrate import create, migrate, migrations, schema_version, upgrade


def schema_of(connection: apsw.Connection) -> dict[str, str]:
    """The text of every table, index and trigger, without comments and white space."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {str(name): _plain(str(sql)) for name, sql in rows}


def _plain(sql: str) -> str:
    return re.sub(r"\s", "", re.sub(r"--[^\n]*", "", sql))


def test_migrated_and_fresh_schemas_are_equal() -> None:
    fresh, migrated = apsw.Connection(""), apsw.Connection("")
    create(fresh)
    upgrade(migrated, 0)
    assert schema_of(fresh) == schema_of(migrated)
    assert schema_version(fresh) == schema_version(migrated) == len(migrations())


@pytest.mark.parametrize("version", range(1, len(migrations())))
def test_a_file_of_each_older_version_is_brought_up(tmp_path: Path, version: int) -> None:
    path = tmp_path / "windlass.db"
    with apsw.Connection(str(path)) as old:
        for step in migrations()[:version]:
            old.execute(read_sql("windlass.store.sqlite.migrations", step.filename))
        old.pragma("user_version", version)
        old.execute("INSERT INTO meta VALUES ('epoch', 7)")
    store = open_store(path)
    assert transact(store, lambda tx: tx.catalog.meta()) == {"epoch": 7}
    assert schema_version(store._writer) == len(migrations())
    close(store)


def test_a_file_from_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    close(open_store(path))
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", 99)
    with pytest.raises(StoreUnavailable, match="got 99; start the newer Windlass"):
        open_store(path)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "windlass.db"))
    connection.execute(read_sql("windlass.store.sqlite.migrations", migrations()[0].filename))
    connection.execute("CREATE INDEX due_job ON due (job)")
    connection.pragma("user_version", 1)
    before = schema_of(connection)
    with pytest.raises(apsw.SQLError, match="due_job already exists"):
        migrate(connection, tmp_path / "windlass.db")
    assert schema_of(connection) == before
    assert schema_version(connection) == 1


def test_the_masks_are_those_of_the_table_of_transitions() -> None:
    """If this fails the table has changed: write a migration with the masks it names."""
    masks: dict[int, int] = {}
    for frm, to in TRANSITION_CODES:
        masks[frm] = masks.get(frm, 0) | 1 << to
    schema = read_sql("windlass.store.sqlite", "schema.sql")
    written = {int(frm): int(mask) for frm, mask in re.findall(r"WHEN (\d+) THEN (\d+)", schema)}
    assert written == masks
