"""A copy of a database file that is in use, as of one moment."""

import os
from pathlib import Path

import apsw

from windlass.domain.values.errors import InvalidInput
from windlass.store.sqlite.connection import open_reader, refuse_damaged
from windlass.store.sqlite.copies import mark_backup
from windlass.store.sqlite.faults import raise_as_unavailable

PAGES = 10_000  # copied at a time


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
        # One read transaction around it all: a writer beside it would make it begin again.
        source.execute("BEGIN")
        source.pragma("schema_version")
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
        # Pages are copied unread, so the copy is as damaged as its original.
        refuse_damaged(copy, path, "integrity_check")
        mark_backup(copy)
    finally:
        copy.close()
        source.close()
