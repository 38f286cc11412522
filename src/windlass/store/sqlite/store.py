"""The store in one SQLite file.

One connection writes, on the event loop's own thread: a transaction runs to its end in one step, so
nothing comes between its statements. A transaction of many rows runs in a thread, so that it does
not block the loop; others wait for it. Long reads and checkpoints have connections of their own.

One process holds the file; others may use it as guests. Each transaction first checks whether
another process has written; if so, it trusts none of its caches. An embedded client takes a file
over when its server has been away for a while, and gives it back when the server starts again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import apsw
import structlog

from windlass.domain.rows.gaps import Mark
from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.clock import Clock
from windlass.ports.loop_time import INLINE, SMALL, gc_paused, give_way_if_long
from windlass.ports.this_process import note_closed, note_open
from windlass.store.sql.snapshot import Snapshot, take_snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.sqlite.backup import newest_event, refuse_older
from windlass.store.sqlite.channel import Hub, Link, ask_for_file
from windlass.store.sqlite.connection import (
    CORRUPT,
    Checkpoints,
    as_unavailable,
    migrate,
    open_checkpointer,
    open_reader,
    open_writer,
    raise_as_unavailable,
    refusal,
    refuse_damaged,
)
from windlass.store.sqlite.file_lock import (
    SERVER,
    STAND_IN,
    FileLock,
    Holding,
    forget_newest,
    holding,
)
from windlass.store.sqlite.roles import roles_over
from windlass.store.sqlite.session import Sequences, SqliteSession, drive
from windlass.store.sqlite.statements import QUERIES, Row
from windlass.store.store import Hearers, News

T = TypeVar("T")
log = structlog.get_logger()
# A few tries at once outlast a short lock; the committer waits for a longer one.
BUSY_TRIES = 20
OPENING_MS = 10_000  # while another process opens the same file or writes
_BEGIN = QUERIES["begin"]
_BEGIN_READ = QUERIES["begin_read"]
_COMMIT = QUERIES["commit"]
_ROLL_BACK = QUERIES["roll_back"]
_SAVE = QUERIES["save_sequence"]
_VERSION = QUERIES["data_version"]
GIVING_S: Final = 60.0  # until its running jobs have ended or are handed back
TRIES: Final = 250  # after it has closed the connection, until its lock is free
PAUSE_MS: Final = 20


class SqliteStore:
    """`Store` over one file; `open` makes one.

    Tests and measurements use its connections, `writer` and `reader`.
    """

    def __init__(
        self, path: Path, clock: Clock, server: str, writer: apsw.Connection, guard: FileLock | None
    ) -> None:
        self.path = path
        self._clock = clock
        self._guard = guard
        self.writer = writer
        self.reader = open_reader(path)
        self._mover = open_checkpointer(path)
        self._checkpoints = Checkpoints(writer, self._mover)
        self._sequences = Sequences()
        self._server = server
        # Others wait for a transaction in a thread, as they would for one on the loop.
        self._turn = asyncio.Lock()
        self._read_session = SqliteSession(self.reader, Sequences())
        self._write_tx = roles_over(SqliteSession(writer, self._sequences), server)
        self._read_tx = roles_over(self._read_session, server)
        self._now = 0
        self._version = -1
        self._catch_up()
        self._channel: Hub | Link | None = None
        self._asked: Callable[[], None] = lambda: None
        self._hearers = Hearers()
        self._is_open = True
        note_open(path)
        self._damage = ""  # the message, once damage was found
        self._notes_newest = False

    @classmethod
    def open(
        cls,
        path: Path | str,
        clock: Clock,
        server: str = "s1",
        exclusive: bool = True,
        blobs: str = "",
        restored: bool = False,
    ) -> "SqliteStore":
        """Opens or creates the file at `path`, and brings its schema up to date.

        `exclusive` refuses a second server on the same file; without it, the process is a guest,
        which `lead` may make the holder. `blobs` is passed on to guests. Raises `StoreUnavailable`
        if the file is in use, damaged, made by a newer Windlass or, unless it may be `restored`, a
        backup or an older copy.
        """
        path = Path(path).absolute()
        if not path.exists():
            forget_newest(path)
        guard = FileLock(path, SERVER, blobs) if exclusive else None
        writer: apsw.Connection | None = None
        try:
            writer = open_writer(path, OPENING_MS)
            migrate(writer, path)
            if not restored:
                refuse_older(writer, path)
            store = cls(path, clock, server, writer, guard)
            if not restored:
                store.note_newest()
            writer.set_busy_timeout(0)
            return store
        except BaseException as error:
            if writer is not None:
                writer.close(True)
            if guard is not None:
                guard.release()
            raise_as_unavailable(error, path)

    @property
    def shared(self) -> bool:
        return self._channel is not None

    @property
    def leads(self) -> bool:
        """Returns whether this process holds the file."""
        return self._guard is not None

    @property
    def holding(self) -> Holding:
        """Returns who holds the file, or held it last."""
        return holding(self.path)

    async def join(self, vacant: Callable[[], None] = lambda: None) -> None:
        """Starts exchanging news with the other processes on this file.

        A guest calls `vacant` when nobody seems to hold the file, so that it may `lead`.
        """
        if self._guard is not None:
            self._channel = Hub(self.path, self._hearers.tell, self._asked)
        else:
            self._channel = Link(self.path, self._hearers.tell, vacant)
        await self._channel.open()

    async def lead(self, kind: str, blobs: str, asked: Callable[[], None] = lambda: None) -> bool:
        """Becomes the holder of the file; returns False while another process is.

        `asked` is called when a server wants the file, so that this process can `step_down`.
        """
        try:
            guard = FileLock(self.path, kind, blobs)
        except StoreUnavailable:
            return False
        self._guard = guard
        self._note_newest()
        self._asked = asked
        if self._channel is not None:
            await self._channel.close()
            await self.join()
        return True

    async def step_down(self, vacant: Callable[[], None]) -> None:
        """Leaves the file to the server that has asked for it, and continues as a guest."""
        guard, self._guard = self._guard, None
        if self._channel is not None:
            await self._channel.close()
        if guard is not None:
            guard.release(to=SERVER)
        await self.join(vacant)

    @property
    def inline(self) -> bool:
        return True

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        if self._turn.locked() and INLINE.get():
            raise RuntimeError("a store transaction began inside another one")
        async with self._turn:
            if rows <= SMALL:
                return self._transact(work)
            return await _finished(partial(self._transact, work))

    def _transact(self, work: Callable[[WriteTx], Awaitable[T]]) -> T:
        self._begin()
        self._write_tx.places.begin()
        committing = False
        execute = self.writer.execute
        try:
            if execute(_VERSION).get != self._version:
                self._catch_up()
            result = drive(work(self._write_tx.at(self._tell_time())))
            unsaved = self._sequences.unsaved()
            if unsaved:
                self.writer.executemany(_SAVE, unsaved)
            committing = True
            execute(_COMMIT)
        except BaseException as error:
            self._roll_back()
            self._fail(error, committing)
        self._sequences.committed()
        if self._checkpoints.is_wanted():
            self._checkpoints.run()
            self._note_newest()
        return result

    async def now(self) -> int:
        self._check_open()
        return self._tell_time()

    async def read(self, work: Callable[[ReadTx], Awaitable[T]], rows: int = 0) -> T:
        await give_way_if_long()  # nothing else here yields, however often somebody reads
        now = self._tell_time()
        if rows > SMALL:
            alone = partial(self._read_alone, lambda tx, _: drive(work(tx)), now)
            return await _finished(alone)
        return self._on_reader(lambda: drive(work(self._read_tx.at(now))))

    async def snapshot(self) -> Snapshot:
        return self._on_reader(lambda: drive(take_snapshot(self._read_session)))

    async def read_beside(self, work: Callable[[ReadTx, Snapshot], Awaitable[T]]) -> T:
        tx = self._read_tx.at(self._tell_time())
        if await self.read(lambda tx: tx.log.newest()) <= SMALL:
            return self._on_reader(lambda: drive(_beside(work, tx, self._read_session)))
        beside = partial(self._read_alone, lambda tx, rows: drive(_beside(work, tx, rows)), tx.now)
        return await _finished(beside)

    def _read_alone(self, work: Callable[[ReadTx, SqliteSession], T], now: int) -> T:
        """Runs `work` over its own connection, in a thread."""
        self._check_open()
        reader = open_reader(self.path)
        try:
            session = SqliteSession(reader, Sequences())
            tx = roles_over(session, self._server).at(now)
            reader.execute(_BEGIN_READ)
            return work(tx, session)
        except apsw.Error as error:
            self._fail(error)
        finally:
            reader.close(True)

    @property
    def newest_mark(self) -> Mark | None:
        """Returns the newest committed event. It uses the reader, as a thread may be using the
        writer.
        """
        if not self._is_open or self._damage:
            return None
        newest: list[Row] = self.reader.execute(QUERIES["newest_event"]).fetchall()
        return Mark(newest[0][1], newest[0][0]) if newest else None

    def announce(self, news: News) -> None:
        if self._channel is not None:
            self._channel.tell(news)

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        return self._hearers.add(hear)

    async def close(self) -> None:
        """Closes all connections, the writer last, since closing it removes the WAL."""
        if self._is_open:
            self._is_open = False
            note_closed(self.path)
            if self._channel is not None:
                await self._channel.close()
            self._note_newest()
            self.reader.close(True)
            self._mover.close(True)
            self.writer.close(True)
            if self._guard is not None:
                self._guard.release()

    def checkpoint(self) -> bool:
        """Moves the WAL's pages into the database; returns True if all were moved."""
        self._check_open()
        return self._checkpoints.run()

    def note_newest(self) -> None:
        """Records now, and as the file grows, that this is the file to continue."""
        self._notes_newest = True
        self._note_newest()

    def check_file(self) -> None:
        """Raises `StoreUnavailable` if the file is damaged; reads all of it."""
        self._on_reader(lambda: refuse_damaged(self.reader, self.path, "integrity_check"))

    def _begin(self) -> None:
        self._check_open()
        for tries_left in range(BUSY_TRIES, 0, -1):
            try:
                self.writer.execute(_BEGIN)
                return
            except apsw.Error as error:
                if tries_left > 1 and isinstance(error, apsw.BusyError):
                    continue
                self._fail(error)

    def _catch_up(self) -> None:
        """Catches up with another process that has written: its numbers and its time count too."""
        execute = self.writer.execute
        self._version = execute(_VERSION).get
        saved: list[Row] = execute(QUERIES["sequences"]).fetchall()
        self._sequences.reload(saved)
        newest: list[Row] = execute(QUERIES["newest_event"]).fetchall()
        self._now = max(self._now, newest[0][0] if newest else 0)

    def _note_newest(self) -> None:
        """Records the newest event, by which an older copy is recognized."""
        if self._guard is not None and self._notes_newest:
            with suppress(apsw.Error, OSError):
                self._guard.note(newest_event(self.writer))

    def _roll_back(self) -> None:
        self._sequences.rolled_back()
        # Some errors, such as a full disk, roll back by themselves.
        if self.writer.in_transaction:
            self.writer.execute(_ROLL_BACK)

    def _on_reader(self, work: Callable[[], T]) -> T:
        """Runs `work` while the reader holds one snapshot."""
        self._check_open()
        try:
            self.reader.execute(_BEGIN_READ)
            try:
                return work()
            finally:
                if self.reader.in_transaction:  # some errors roll back by themselves
                    self.reader.execute(_ROLL_BACK)
        except apsw.Error as error:
            self._fail(error)

    def _fail(self, error: BaseException, committing: bool = False) -> NoReturn:
        """Raises `StoreUnavailable` for errors of the file, and others as they are.

        After damage nothing more is written: new rows could not be saved with the rest.
        """
        unavailable = as_unavailable(error, self.path, committing)
        if unavailable is None:
            raise error
        if unavailable.code == CORRUPT and not self._damage:
            self._damage = unavailable.message
            log.error(CORRUPT, error=self._damage)
        raise unavailable from error

    def _tell_time(self) -> int:
        """Returns the clock's time, but never one earlier than before."""
        self._now = max(self._now, self._clock.now_ms())
        return self._now

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable(f"the store on {self.path} was closed", outcome_unknown=False)
        if self._damage:
            raise refusal(CORRUPT, self._damage)


async def _finished(work: Callable[[], T]) -> T:
    """Runs this in a thread, and does not return before it has ended."""
    running = asyncio.get_running_loop().run_in_executor(None, work)
    with gc_paused():
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({running})
            raise


async def _beside(
    work: Callable[[ReadTx, Snapshot], Awaitable[T]], tx: ReadTx, session: SqliteSession
) -> T:
    return await work(tx, await take_snapshot(session))


async def open_held(path: Path, clock: Clock, blobs: str, restored: bool = False) -> SqliteStore:
    """Opens a file as a server; an embedded client that stands in gives it back first."""
    asked = holding(path).kind == STAND_IN and await ask_for_file(path, GIVING_S)
    tries_left = TRIES if asked else 0
    while True:
        try:
            return SqliteStore.open(path, clock, server="s1", blobs=blobs, restored=restored)
        except StoreUnavailable as error:
            if error.code != "store_locked" or not tries_left:
                raise
        tries_left -= 1
        await clock.sleep_ms(PAUSE_MS)
