"""The lock that decides which process holds a database file: runs its loops and its jobs.

It is a `flock` on a file of its own: SQLite's locks on the database are lost when any
other descriptor of that file is closed in this process. Whoever holds it writes into it
who it is and where the blobs are, for those that are refused or come as guests.
"""

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

from windlass.domain.errors import StoreUnavailable
from windlass.store.sqlite.faults import refusal

SERVER = "server"
EMBEDDED = "embedded client"
STAND_IN = "embedded client in place of a server"  # which gives the file back when asked
PROGRAM_LIMIT = 120  # characters of a command line, in a message


class Holding(NamedTuple):
    """What the present holder of a file, or else the last one, said of itself."""

    process: str = "unknown"
    kind: str = ""
    blobs: str = ""


class Guard:
    """Held from `__init__` to `release`, or until the process ends in any way."""

    def __init__(self, database: Path, kind: str = SERVER, blobs: str = "") -> None:
        self.path = _lock_of(database)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise _refusal(database, holding(database)) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n{kind}\n{blobs}\n".encode(), 0)
        self._descriptor = descriptor
        self._blobs = blobs

    def release(self, to: str = "") -> None:
        """Let go, `to` one of a kind that is about to come.

        The file stays: removing it would race with one who just opened it.
        """
        if self._descriptor >= 0:
            if to:
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, f"{os.getpid()}\n{to}\n{self._blobs}\n".encode(), 0)
            os.close(self._descriptor)
            self._descriptor = -1


def holding(database: Path) -> Holding:
    """What the lock's file says; it outlives its holder."""
    try:
        lines = _lock_of(database).read_text(errors="replace").split("\n")
    except OSError:
        return Holding()
    process, kind, blobs, *_ = [*lines, "", "", ""]
    return Holding(process.strip() or "unknown", kind, blobs)


def _lock_of(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _program_of(process: str) -> str:
    """What a process runs, in brackets, where it can be seen."""
    try:
        words = Path("/proc", process, "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    line = b" ".join(words).decode("utf-8", "replace").strip()
    return f" ({line[:PROGRAM_LIMIT]})" if line else ""


def _refusal(database: Path, holder: Holding) -> StoreUnavailable:
    lock = _lock_of(database)
    who = f"process {holder.process}{_program_of(holder.process)}"
    embedded = holder.kind in (EMBEDDED, STAND_IN)
    who += f", an {holder.kind}" if embedded else ""
    remedy = (
        "it has taken the file over, or had it first: close that client, or end its program, and "
        "start the server again"
        if embedded
        else "stop that one, or use PostgreSQL to run several servers"
    )
    return refusal(
        "store_locked",
        f"expected to be the only server on {database}, got {lock} locked by {who}; {remedy}",
    )
