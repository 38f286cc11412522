"""An old file becomes what a new one is, and a newer one is refused."""

import re
from pathlib import Path

import apsw
import pytest

from tests.store.sqlite.driving import close, open_store, transact
from windlass.domain.lifecycle.states import TRANSITION_CODES
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql.queries import FIRST_VERSION, Step, latest
from windlass.store.sqlite.connection import STEPS, create, migrate, schema_version

SECOND = (Step(2, "notes", "CREATE TABLE notes (note TEXT)"),)
THIRD = Step(3, "numbers", "ALTER TABLE notes ADD COLUMN number INTEGER DEFAULT 3")
EVENT = """
INSERT INTO events (at, kind, job, attempt, worker, incarnation, from_state, to_state)
VALUES (1, 1, 1, 0, 0, 0, ?, ?)
"""


def schema_of(connection: apsw.Connection) -> dict[str, str]:
    """The text of every table, index and trigger, without comments and white space."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {str(name): _plain(str(sql)) for name, sql in rows}


def _plain(sql: str) -> str:
    return re.sub(r"\s", "", re.sub(r"--[^\n]*", "", sql))


def test_a_new_file_has_version_1_and_is_accepted_again(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    store = open_store(path)
    assert schema_version(store.writer) == FIRST_VERSION == latest(STEPS)
    transact(store, lambda tx: tx.catalog.set_meta("epoch", 7))
    close(store)
    store = open_store(path)
    assert transact(store, lambda tx: tx.catalog.meta())["epoch"] == 7
    close(store)


def test_an_older_file_gets_the_steps_it_lacks_in_order(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    connection = apsw.Connection(str(path))
    migrate(connection, path)
    migrate(connection, path, SECOND)
    assert schema_version(connection) == 2
    connection.execute("INSERT INTO notes VALUES ('two')")
    migrate(connection, path, (*SECOND, THIRD))
    assert schema_version(connection) == 3
    assert connection.execute("SELECT * FROM notes").fetchall() == [("two", 3)]


def test_a_new_file_gets_no_steps(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "windlass.db"))
    migrate(connection, tmp_path / "windlass.db", (*SECOND, THIRD))
    assert schema_version(connection) == 3
    assert "notes" not in schema_of(connection)  # schema.sql would have it


def test_a_file_from_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    close(open_store(path))
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", 99)
    with pytest.raises(
        StoreUnavailable,
        match=r"version 99, .* version 1; install a newer",
    ):
        open_store(path)


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "windlass.db"))
    migrate(connection, tmp_path / "windlass.db")
    before = schema_of(connection)
    broken = Step(2, "broken", "CREATE TABLE notes (note TEXT); CREATE INDEX due_job ON due (job)")
    with pytest.raises(apsw.SQLError, match="due_job already exists"):
        migrate(connection, tmp_path / "windlass.db", (broken,))
    assert schema_of(connection) == before
    assert schema_version(connection) == 1


def test_the_file_refuses_every_transition_that_the_domain_does_not_know() -> None:
    connection = apsw.Connection("")
    create(connection)
    taken = set()
    codes = range(max(max(pair) for pair in TRANSITION_CODES) + 2)
    for before in codes:
        for after in codes:
            try:
                connection.execute(EVENT, (before, after))
                taken.add((before, after))
            except apsw.ConstraintError:
                pass
    assert taken == TRANSITION_CODES
