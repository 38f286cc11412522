"""Submissions that no server took, in a folder of this machine, and their delivery in order.

Several processes may share the folder. An entry is sent only after the one before it was settled
in the file, with the key it was first sent with, so that it arrives once and in its place.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from windlass.client.errors import Spooled
from windlass.client.reconnect import PASSES
from windlass.client.transport import ServerError
from windlass.domain.values.errors import Conflict, InvalidInput, Unreachable, WindlassError
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.ports.loop_time import pass_time

T = TypeVar("T")
Post = Callable[[SubmitRequest], Awaitable[SubmitReply]]

MAX_BYTES: Final = 64 * 1024 * 1024  # of one folder
MAX_ANSWERS: Final = 10_000  # that are kept for handles of delivered jobs
MAX_FAILURES: Final = 5  # of a server on one entry, before that steps aside
PAUSE_S: Final = 1.0  # between tries to deliver
ASK_S: Final = 0.1  # between looks at whether an entry was delivered
BUSY_S: Final = 30.0  # how long one process waits for the file
WAITS: Final = frozenset({401, 407, 408})  # statuses that say nothing about the entry
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
FILE: Final = "spool.db"
REJECTED: Final = "rejected.jsonl"

# `request` is NULL once the entry is settled, and `answer` says how.
TABLES: Final = """
CREATE TABLE IF NOT EXISTS entries (
  number INTEGER PRIMARY KEY AUTOINCREMENT, server TEXT NOT NULL, request BLOB, answer BLOB);
CREATE INDEX IF NOT EXISTS waiting ON entries (server, number) WHERE request IS NOT NULL;
"""

log = logging.getLogger("windlass.client")


class Outcome(msgspec.Struct):
    """How an entry was settled: with the server's answer, or why it was refused."""

    reply: SubmitReply | None = None
    refusal: str | None = None


class Entry(NamedTuple):
    """A submission that waits, as it is sent."""

    number: int
    request: bytes


class Waiting(NamedTuple):
    """A submission that waits, and for which server."""

    number: int
    server: str
    request: bytes


class SpoolFolder:
    """The files: what waits, what was answered, and what was refused. Its calls block."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            # Links and the working directory may change later.
            self.path = folder.resolve(strict=True)
            _expect_own(self.path)
            with self._open() as file:
                file.executescript(TABLES)
            (self.path / FILE).chmod(0o600)
        except (OSError, sqlite3.Error) as error:
            raise InvalidInput("spool", "a folder to write to", f"{folder}: {error}") from None

    def add(self, server: str, request: bytes) -> int | None:
        """Keeps a submission and returns its number; None if the folder is full."""
        with self._open() as file, _writing(file):
            pages, free, size = (
                file.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            if (pages - free) * size + self._rejected_bytes() + len(request) > MAX_BYTES:
                return None
            added = "INSERT INTO entries (server, request) VALUES (?, ?)"
            return file.execute(added, (server, request)).lastrowid

    def first(self, server: str) -> Entry | None:
        """Returns the oldest submission that waits for a server."""
        asked = (
            "SELECT number, request FROM entries WHERE request IS NOT NULL AND server = ? "
            "ORDER BY number LIMIT 1"
        )
        with self._open() as file:
            found = file.execute(asked, (server,)).fetchone()
        return None if found is None else Entry(*found)

    def waiting(self) -> list[Waiting]:
        """Returns all submissions that wait, the oldest first."""
        asked = "SELECT number, server, request FROM entries WHERE request IS NOT NULL ORDER BY 1"
        with self._open() as file:
            return [Waiting(*found) for found in file.execute(asked)]

    def others(self, server: str) -> list[str]:
        """Returns the other servers that submissions wait for."""
        asked = "SELECT DISTINCT server FROM entries WHERE request IS NOT NULL AND server <> ?"
        with self._open() as file:
            return [name for (name,) in file.execute(asked, (server,))]

    def settle(self, server: str, entry: Entry, outcome: Outcome) -> None:
        """Notes what became of an entry, unless another process has; keeps what was refused."""
        with self._open() as file, _writing(file):
            done = file.execute(
                "UPDATE entries SET request = NULL, answer = ? "
                "WHERE number = ? AND request IS NOT NULL",
                (msgspec.json.encode(outcome), entry.number),
            )
            if done.rowcount and outcome.refusal is not None:
                self._keep_rejected(server, entry, outcome.refusal)
            file.execute(
                "DELETE FROM entries WHERE request IS NULL AND number <= ?",
                (entry.number - MAX_ANSWERS,),
            )

    def outcome(self, number: int) -> Outcome | None:
        """Returns what became of an entry; None while it waits."""
        with self._open() as file:
            asked = "SELECT answer FROM entries WHERE number = ?"
            found = file.execute(asked, (number,)).fetchone()
        if found is None:
            return Outcome(refusal=f"it was settled more than {MAX_ANSWERS} entries ago")
        return None if found[0] is None else msgspec.json.decode(found[0], type=Outcome)

    @contextmanager
    def delivering(self) -> Iterator[bool]:
        """Yields whether no other process delivers meanwhile. Within one process all may."""
        with os.fdopen(self._touch("lock"), "ab") as file:
            try:
                # A lock of the process: its children do not inherit it, and it ends with it.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    def _keep_rejected(self, server: str, entry: Entry, why: str) -> None:
        try:
            request: Any = msgspec.json.decode(entry.request)
        except UNREADABLE:
            request = entry.request.decode("utf-8", "replace")
        line = msgspec.json.encode({"error": why, "server": server, "request": request})
        with os.fdopen(self._touch(REJECTED), "ab") as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _rejected_bytes(self) -> int:
        try:
            return (self.path / REJECTED).stat().st_size
        except FileNotFoundError:
            return 0

    def _touch(self, name: str) -> int:
        """Opens a file for appending that nobody else may read."""
        return os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Opens the file for one operation: threads and forks have none in common.

        Nothing but SQLite may open it: to close it would end the locks of all threads.
        """
        file = sqlite3.connect(self.path / FILE, timeout=BUSY_S, isolation_level=None)
        with closing(file):
            # What was acknowledged survives a loss of power, the name of the journal included.
            file.execute("PRAGMA synchronous = EXTRA")
            yield file


def _expect_own(folder: Path) -> None:
    """Raises `InvalidInput` if others may look into the folder, or could once put files there."""
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        hint = f"others may read {folder}: name a new folder, or use chmod 700"
        raise InvalidInput("spool", "a folder that only this user can access", str(folder), hint)
    for file in folder.iterdir():
        try:
            facts = file.lstat()
        except FileNotFoundError:
            continue  # Another process has just removed its journal.
        if facts.st_uid != os.geteuid() or stat.S_ISLNK(facts.st_mode):
            hint = "remove it if you do not know it, or name a new folder"
            expected = "a folder whose files all belong to this user"
            raise InvalidInput("spool", expected, file.name, hint)


@contextmanager
def _writing(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")
    with file:
        yield


class Spool:
    """A folder, and the delivery to a server as long as something waits there."""

    def __init__(self, folder: Path) -> None:
        self.folder = SpoolFolder(folder)
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._failures = 0  # of the server, on the first entry
        self._warned = False  # that deliveries fail

    async def is_waiting(self, server: str) -> bool:
        """Returns whether submissions wait for the server."""
        try:
            return await _aside(partial(self.folder.first, server)) is not None
        except (OSError, sqlite3.Error) as error:
            why = f"the spool {self.folder.path} cannot be read: {error}; use another folder"
            raise Conflict("spool_unreadable", why) from error

    async def keep(
        self, server: str, request: SubmitRequest, why: WindlassError | None, post: Post
    ) -> Spooled:
        """Keeps a submission and returns what to raise; `why` it was not taken."""
        path = self.folder.path
        add = partial(self.folder.add, server, msgspec.json.encode(request))
        try:
            number = await _aside(add)
            full = f"the spool {path} is full ({MAX_BYTES >> 20} MiB)"
        except (OSError, sqlite3.Error) as error:
            number, full = None, f"the spool {path} cannot be written: {error}"
        if number is None:
            sent = isinstance(why, Unreachable) and why.sent
            raise Unreachable(f"{full}, and {why or 'others wait there'}", sent) from why
        if why is not None:
            log.warning("windlass: %s; the submission waits in %s", why, path)
        self.deliver(server, post)
        return Spooled(Delivery(self, server, number, post))

    def deliver(self, server: str, post: Post) -> None:
        """Delivers in the background of this loop what waits, unless that is under way."""
        loop = asyncio.get_running_loop()
        tasks = {where: task for where, task in self._tasks.items() if not task.done()}
        if loop not in tasks:
            tasks[loop] = loop.create_task(self._run(server, post))
            self._tasks = tasks

    def stop(self) -> None:
        """Ends the delivery; what waits is delivered by the next client of the folder."""
        task = self._tasks.get(asyncio.get_running_loop())
        if task is not None:
            task.cancel()

    async def _run(self, server: str, post: Post) -> None:
        for other in await _aside(partial(self.folder.others, server)):
            log.warning("windlass: submissions in %s wait for %s", self.folder.path, other)
        first = partial(self.folder.first, server)
        while True:
            try:
                with self.folder.delivering() as alone:
                    while entry := await _aside(first):
                        if not alone or not await self._send(server, entry, post):
                            break
                    else:
                        return
            except (OSError, sqlite3.Error) as error:
                self._warn(f"it cannot be read or written: {error}")
            await pass_time(PAUSE_S)

    async def _send(self, server: str, entry: Entry, post: Post) -> bool:
        """Sends an entry and settles it; returns False if it has to wait."""
        try:
            reply = await post(msgspec.json.decode(entry.request, type=SubmitRequest))
            outcome = Outcome(reply)
        except (WindlassError, *UNREADABLE) as error:
            if self._must_wait(error):
                self._warn(str(error))
                return False
            outcome = Outcome(refusal=str(error))
            kept = self.folder.path / REJECTED
            log.warning("windlass: a submission was refused, and is kept in %s: %s", kept, error)
        self._failures, self._warned = 0, False
        await _aside(partial(self.folder.settle, server, entry, outcome))
        return True

    def _must_wait(self, error: Exception) -> bool:
        """Returns whether another try may succeed, since the error is not about the entry."""
        if isinstance(error, ServerError) and error.status >= 500:
            self._failures += 1
            return self._failures < MAX_FAILURES
        if isinstance(error, ServerError):
            return error.status in WAITS
        return isinstance(error, PASSES) or getattr(error, "retry_after_ms", None) is not None

    def _warn(self, why: str) -> None:
        """Says once why submissions wait, until one is settled."""
        if not self._warned:
            log.warning("windlass: submissions wait in %s: %s", self.folder.path, why)
        self._warned = True


class Delivery:
    """What became of one submission in a spool."""

    def __init__(self, spool: Spool, server: str, number: int, post: Post) -> None:
        self._spool = spool
        self._server = server
        self._number = number
        self._post = post

    def reply(self) -> SubmitReply:
        """Returns the server's answer; raises `Conflict` if it has not come, or was no."""
        found = self._outcome()
        if found is None:
            raise Conflict(
                "not_delivered",
                f"it has no id yet: no server has taken it, and it waits in {self._path} until one "
                "does; `result()` and `wait()` wait for that, and jobs that depend on each other "
                "go into one `workflow` block",
            )
        return found

    async def wait(self) -> None:
        """Returns once the server has answered; raises `Conflict` if it refused."""
        while await _aside(self._outcome) is None:
            self._spool.deliver(self._server, self._post)
            await pass_time(ASK_S)

    @property
    def _path(self) -> Path:
        return self._spool.folder.path

    def _outcome(self) -> SubmitReply | None:
        found = self._spool.folder.outcome(self._number)
        if found is not None and found.refusal is not None:
            raise Conflict(
                "rejected",
                f"this submission waited in {self._path}, and has no answer: {found.refusal}; see "
                f"{self._path / REJECTED}",
            )
        return None if found is None else found.reply


async def _aside(work: Callable[[], T]) -> T:
    """Does this in a thread, so that the loop goes on while a disk is slow."""
    return await asyncio.get_running_loop().run_in_executor(None, work)
