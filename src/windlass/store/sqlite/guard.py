"""The lock that keeps a second server away from a database file.

It is a `flock` on a file of its own: SQLite's locks on the database are lost when any
other descriptor of that file is closed in this process.
"""

import fcntl
import os
from pathlib import Path

from windlass.store.sqlite.faults import refusal


class Guard:
    """Held from `__init__` to `release`, or until the process ends in any way."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise refusal(
                "store_locked",
                f"expected to be the only server on {database}, got {self.path} locked by "
                f"process {holder}; stop that one, or use PostgreSQL to run several servers",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go. The file stays: removing it would race with one who just opened it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
