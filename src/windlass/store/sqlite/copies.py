"""Recognizes a database that is a backup, or an older copy of the file that was here.

Workers know of jobs that an older copy does not, so a server must not just go on with it. A copy
that `back_up` made carries a mark; any other one has fewer events than were noted beside the file.
"""

from pathlib import Path

import apsw

from windlass.store.sql.catalog import BACKUP
from windlass.store.sqlite.faults import refusal
from windlass.store.sqlite.file_lock import holding
from windlass.store.sqlite.statements import QUERIES


def mark_backup(copy: apsw.Connection) -> None:
    """Marks a copy, so that it is recognized wherever it is put."""
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
