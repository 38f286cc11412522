"""Damages a database file in the ways that disks, people and crashes do."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from tests.store.sqlite.driving import close, fill, open_store

PAGE: Final = 4_096


def make_filled(path: Path, jobs: int = 2_000) -> None:
    """Makes a file with rows in its large tables; nothing is left in a WAL."""
    close(open_store(path))
    fill(path, jobs)


def overwrite_header(path: Path) -> None:
    _write(path, 0, b"\xa5" * 100)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero_a_page(path: Path) -> None:
    """Zeroes a page in the middle of the jobs, which holds rows."""
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        pages = "SELECT pageno FROM dbstat WHERE name = 'jobs' AND pagetype = 'leaf'"
        leaves = sorted(page for (page,) in connection.execute(pages))
    connection.close()
    _write(path, (leaves[len(leaves) // 2] - 1) * PAGE, bytes(PAGE))


def spoil_table(path: Path) -> None:
    _write(path, (_root(path, "events") - 1) * PAGE, b"\xa5" * PAGE)


def spoil_index(path: Path) -> None:
    _write(path, (_root(path, "leases_worker") - 1) * PAGE, b"\xa5" * PAGE)


def mismatch_index(path: Path) -> None:
    """Lets an index keep rows its table has lost: every page is valid, as after a lost write."""
    with apsw.Connection(str(path)) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.pragma("writable_schema", True)
        entry = "FROM sqlite_master WHERE name = 'leases_worker'"
        row = connection.execute(f"SELECT * {entry}").fetchone()
        connection.execute(f"DELETE {entry}")
        connection.pragma("schema_version", connection.pragma("schema_version") + 1)
        connection.execute("DELETE FROM leases WHERE job % 20 = 0")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
        connection.pragma("schema_version", connection.pragma("schema_version") + 1)
    connection.close()


DAMAGES: Final[dict[str, Callable[[Path], None]]] = {
    "header": overwrite_header,
    "truncated": truncate,
    "zeroed page": zero_a_page,
    "table": spoil_table,
    "index": spoil_index,
}


def _root(path: Path, name: str) -> int:
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).get
    connection.close()
    assert isinstance(found, int), name
    return found


def _write(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)
