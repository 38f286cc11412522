"""Open connections to a database file, with the settings each role needs."""

import os
from functools import cache
from pathlib import Path

import apsw

from windlass.store.sqlite.faults import damaged, raise_as_unavailable
from windlass.store.sqlite.migrate import create
from windlass.store.sqlite.statements import QUERIES

# apsw's statement cache is a ring, and every row of an `executemany` moves it on by one:
# with the default of 100 a batch would throw out every other statement. 512 is the most.
STATEMENTS = 512
WRITER_CACHE_KIB = 64 * 1024
READER_CACHE_KIB = 16 * 1024
READER_PATIENCE_MS = 2_000
WAL_TRIES = 20
# A WAL that a long reader let grow is cut to this size (bytes) once it begins again.
WAL_LIMIT = 64 * 1024 * 1024
# A check of the whole file takes about 0.1 s for this many bytes; larger files are
# checked as far as they are read.
CHECKED_SIZE = 32 * 1024 * 1024


def open_writer(path: Path, patience_ms: int = 0) -> apsw.Connection:
    """Returns the one connection that writes. It creates the file, readable by its owner only.

    For `patience_ms` it waits for others that have the file locked, also afterwards.
    """
    try:
        _make_private(path)
        connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(patience_ms)
        _use_wal(connection)
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", False)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -WRITER_CACHE_KIB)
        connection.pragma("journal_size_limit", WAL_LIMIT)
        connection.wal_autocheckpoint(0)
        _check(connection, path)
        return connection
    except (apsw.Error, OSError) as error:
        raise_as_unavailable(error, path)


def open_reader(path: Path) -> apsw.Connection:
    """Returns a connection that cannot write, for long reads; it never waits for the writer.

    Only another process that opens or closes the file can lock it out, for a moment.
    """
    connection = _connect(path, apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(READER_PATIENCE_MS)
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -READER_CACHE_KIB)
    return connection


def open_checkpointer(path: Path) -> apsw.Connection:
    """Returns a connection that only moves pages from the WAL into the database."""
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    connection.pragma("synchronous", "full")
    connection.wal_autocheckpoint(0)
    return connection


def open_memory() -> apsw.Connection:
    """Returns the only connection to a new, empty database in memory.

    The schema is copied page by page, in a tenth of the time that its statements take.
    """
    connection = _connect(":memory:", apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    connection.pragma("foreign_keys", False)
    connection.pragma("temp_store", "memory")
    with connection.backup("main", _template(), "main") as copy:
        copy.step()
    return connection


@cache
def _template() -> apsw.Connection:
    template = apsw.Connection(":memory:")
    create(template)
    return template


def _connect(path: Path | str, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=STATEMENTS)
    # Plans must not depend on bound values: statements would be compiled anew for each.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.set_busy_timeout(0)
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Switches to WAL; while another connection does the same, it waits and tries again.

    The switch itself does not wait: two that read the file and want to write to it would wait
    for each other. A transaction that writes nothing does.
    """
    for tries_left in range(WAL_TRIES, 0, -1):
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if tries_left == 1:
                raise
        connection.execute("begin immediate")
        connection.execute("rollback")


def _make_private(path: Path) -> None:
    """Sets the mode before SQLite opens the file, since WAL and index get the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        os.chmod(path, 0o600)


def _check(connection: apsw.Connection, path: Path) -> None:
    connection.pragma("schema_version")
    if path.stat().st_size <= CHECKED_SIZE:
        refuse_damaged(connection, path, "quick_check")


def refuse_damaged(connection: apsw.Connection, path: Path, check: str) -> None:
    """Raises `StoreUnavailable` if `check` finds damage.

    `quick_check` reads every page; `integrity_check` also compares indexes with their tables.
    """
    finding = connection.execute(QUERIES[check]).fetchone()
    if finding is None or finding[0] != "ok":
        raise damaged(path, "no answer" if finding is None else str(finding[0]))
