"""Copies a database file while it is in use, as of one moment, and recognizes copies.

Workers know of jobs that an older copy lacks, so a server must not simply continue with it. A copy
made by `back_up` has a mark; any other copy has fewer events than were noted beside the file.
"""

import os
from pathlib import Path

import apsw

from windlass.domain.values.errors import InvalidInput
from windlass.store.sql.catalog import BACKUP
from windlass.store.sqlite.connection import (
    open_reader,
    raise_as_unavailable,
    refusal,
    refuse_damaged,
)
from windlass.store.sqlite.file_lock import holding
from windlass.store.sqlite.statements import QUERIES

PAGES = 10_000  # copied at a time


def mark_backup(copy: apsw.Connection) -> None:
    """Marks a copy, so that it is recognized in any place."""
    copy.execute(QUERIES["set_meta"], (BACKUP, 1))


def refuse_older(connection: apsw.Connection, path: Path) -> None:
    """Raises `StoreUnavailable` unless the file continues what was here before."""
    noted, newest = holding(path).newest, newest_event(connection)
    if connection.execute(QUERIES["has_meta"], (BACKUP,)).get:
        why = "is a backup"
    elif newest < noted:
        why = f"is an older copy: its newest event is {newest}, but event {noted} was written here"
    else:
        return
    raise refusal(
        "store_restored",
        f"{path} {why}. Workers may know more than it does: run `windlass db restored --store "
        f"sqlite://{path}`, then start again",
    )


def newest_event(connection: apsw.Connection) -> int:
    """Returns the number of the newest event, 0 if there is none."""
    row = connection.execute(QUERIES["newest_event"]).fetchone()
    return 0 if row is None else int(row[1])


def back_up(path: Path, target: Path) -> None:
    """Copies the database at `path` to the new file `target`, readable by its owner only.

    Raises `StoreUnavailable` and leaves no copy if the database is damaged.
    """
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise InvalidInput("file", "a name that is not taken", str(target)) from None
    except OSError as error:
        raise InvalidInput("file", "a file that can be made", f"{target}: {error}") from None
    try:
        _copy(path, target)
    except BaseException as error:
        target.unlink()
        raise_as_unavailable(error, target if isinstance(error, apsw.FullError) else path)


def _copy(path: Path, target: Path) -> None:
    source = open_reader(path)
    copy = apsw.Connection(str(target))
    try:
        # One read transaction around it all: otherwise a writer would make the copy start again.
        source.execute("BEGIN")
        source.pragma("schema_version")
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
        # Pages are copied unread, so a copy of a damaged file is damaged too.
        refuse_damaged(copy, path, "integrity_check")
        mark_backup(copy)
    finally:
        copy.close()
        source.close()
