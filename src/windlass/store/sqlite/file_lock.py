"""Decides by a lock which process holds a database file, and therefore runs its loops and jobs.

It is a `flock` on a file of its own: SQLite's locks on the database are lost when any other
descriptor of that file is closed in this process. The holder writes into it who it is and where the
blobs are, for processes that are refused or become guests. From time to time it adds the number of
the newest event: a database with fewer events was replaced by an older copy.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sqlite.connection import refusal

SERVER = "server"
EMBEDDED = "embedded client"
STAND_IN = "embedded client in place of a server"  # it gives the file back on request
PROGRAM_LIMIT = 120  # characters of a command line, in a message


class Holding(NamedTuple):
    """The process that holds a file, or held it last."""

    process: str = "unknown"
    kind: str = ""
    blobs: str = ""
    newest: int = 0  # the newest noted event


class FileLock:
    """Holds the lock from `__init__` to `release`, or until the process ends in any way."""

    def __init__(self, database: Path, kind: str = SERVER, blobs: str = "") -> None:
        self.path = _lock_of(database)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise _refusal(database, holding(database)) from error
        self._descriptor = descriptor
        self._holding = Holding(str(os.getpid()), kind, blobs, holding(database).newest)
        self._write(self._holding)

    def note(self, newest: int) -> None:
        """Records the number of the newest event, which must be committed."""
        self._holding = self._holding._replace(newest=newest)
        self._write(self._holding)

    def release(self, to: str = "") -> None:
        """Releases the lock; `to` is the kind of holder that is about to take it.

        The file stays: removing it would race with a process that has just opened it.
        """
        if self._descriptor >= 0:
            if to:
                self._write(self._holding._replace(kind=to))
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, told: Holding) -> None:
        text = "".join(f"{part}\n" for part in told).encode()
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


def forget_newest(database: Path) -> None:
    """Forgets the noted event: the database was removed, and the next one starts from scratch."""
    held = holding(database)
    if held.newest:
        with suppress(StoreUnavailable):
            lock = FileLock(database, held.kind, held.blobs)
            lock.note(0)
            lock.release()


def holding(database: Path) -> Holding:
    """Returns the content of the lock's file, which outlives its holder."""
    try:
        lines = _lock_of(database).read_text(errors="replace").split("\n")
    except OSError:
        return Holding()
    process, kind, blobs, newest, *_ = [*lines, "", "", "", ""]
    number = int(newest) if newest.isascii() and newest.isdigit() else 0
    return Holding(process.strip() or "unknown", kind, blobs, number)


def _lock_of(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _program_of(process: str) -> str:
    """Returns the command line of a process in brackets, if it is visible."""
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
        "close that client or stop its program, then start the server again"
        if embedded
        else "stop it first, or use PostgreSQL to run several servers"
    )
    return refusal(
        "store_locked",
        f"{database} is in use: {lock} is locked by {who}; {remedy}",
    )
