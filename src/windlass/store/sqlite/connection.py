"""Opens connections to a database file, with the settings each role needs.

SQLite's errors are translated for the engine: try again, free space, or restore a backup.

A file is brought to the schema that this code expects when it is opened.

Checkpoints move pages from the WAL into the database, so that the WAL stays short. A WAL that is
used again from its beginning commits in less than half the time of one that grows, so pages are
moved between two transactions once there are enough of them. A reader that holds an old snapshot
keeps the WAL from beginning again; then the next try waits for as many pages more.
"""

import os
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

import apsw

from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql.queries import Step, latest, load_steps, read_sql
from windlass.store.sqlite.statements import QUERIES

CORRUPT: Final = "store_corrupt"  # the code of the error for a damaged file

_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
_UNAVAILABLE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.NoMemError,
    *_DAMAGED,
)


def as_unavailable(
    error: BaseException, path: Path, committing: bool = False
) -> StoreUnavailable | None:
    """Returns the error to raise instead, or None if the store is healthy."""
    if not isinstance(error, _UNAVAILABLE):
        return None
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return refusal("store_busy", f"another connection is writing to {path}; try again")
    if isinstance(error, apsw.FullError):
        return refusal("disk_full", f"the disk of {path} is full; free some space")
    if isinstance(error, _DAMAGED):
        return damaged(path, str(error))
    # The commit may have reached the disk, even if the confirmation did not.
    return StoreUnavailable(f"cannot use {path}: {error}", outcome_unknown=committing)


def raise_as_unavailable(error: BaseException, path: Path) -> NoReturn:
    """Raises `StoreUnavailable` for errors of the file, and others as they are."""
    unavailable = as_unavailable(error, path)
    if unavailable is None:
        raise error
    raise unavailable from error


def refusal(code: str, message: str) -> StoreUnavailable:
    """Makes the error for a refusal that changed nothing."""
    error = StoreUnavailable(message, outcome_unknown=False)
    error.code = code
    return error


def damaged(path: Path, finding: str) -> StoreUnavailable:
    """Makes the error for a file that cannot be trusted, with the way back to one that can."""
    return refusal(
        CORRUPT,
        f"{path} is damaged or not a Windlass database: {' '.join(finding.split())}. Stop the "
        "server, keep a copy of the file and its -wal, and restore the newest backup. Without a "
        f"backup, save what can be read with `sqlite3 {path} .recover | sqlite3 recovered.db` "
        "(the sqlite3 of sqlite.org; that of some distributions saves nothing), put that file in "
        "its place and check it with `windlass verify`. Then run `windlass db restored` and start "
        "the server",
    )


STEPS: Final = load_steps("windlass.store.sqlite.migrations")
# apsw's statement cache is a ring, and every row of an `executemany` moves it on by one:
# with the default of 100 a batch would evict every other statement. 512 is the maximum.
STATEMENTS = 512
WRITER_CACHE_KIB = 64 * 1024
READER_CACHE_KIB = 16 * 1024
READER_PATIENCE_MS = 2_000
WAL_TRIES = 20
# A WAL that grew because of a long reader is cut to this size (bytes) when it restarts.
WAL_LIMIT = 64 * 1024 * 1024
# A check of the whole file takes about 0.1 s for this many bytes; larger files are
# only checked where they are read.
CHECKED_SIZE = 32 * 1024 * 1024
# 4 MiB: moved in about 5 ms. Four times as many take longer and save nothing.
PAGES = 1_000


def migrate(connection: apsw.Connection, path: Path, steps: tuple[Step, ...] = STEPS) -> None:
    """Gives a new file the whole schema, and an older one the missing steps."""
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
        version = schema_version(connection)  # another process may have done it already
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


def open_writer(path: Path, patience_ms: int = 0) -> apsw.Connection:
    """Returns the one connection that writes. It creates the file, readable by its owner only.

    It waits up to `patience_ms` while others have the file locked, also later.
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

    Only another process that opens or closes the file can block it, for a moment.
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
    # Plans must not depend on bound values, or statements would be recompiled for each.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.set_busy_timeout(0)
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Switches to WAL; waits and tries again while another connection does the same.

    The switch itself does not wait for locks, since two connections that read the file and want to
    write could deadlock. An empty write transaction does wait.
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


class Checkpoints:
    """Counts the pages of the WAL and moves them when it is time."""

    def __init__(self, writer: apsw.Connection, mover: apsw.Connection) -> None:
        self._mover = mover
        self._pages = 0
        self._wanted_at = PAGES
        writer.set_wal_hook(self._note)

    def is_wanted(self) -> bool:
        """Returns True if the WAL has grown enough since the last checkpoint."""
        return self._pages >= self._wanted_at

    def run(self) -> bool:
        """Moves the pages that no reader needs; returns True if that was all of them. Never waits.

        It runs after a commit, which is valid even if no page could be moved.
        """
        try:
            pages, moved = self._mover.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:  # Another process is moving them now, or the disk is full.
            pages, moved = self._pages, 0
        complete = pages == moved
        self._wanted_at = PAGES if complete else max(pages, 0) + PAGES
        if complete:
            self._pages = 0
        return complete

    def _note(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK
