"""The store in memory: a SQLite database without a file, which ends with its process.

Tests, simulations and embedded clients with ":memory:" use it. Several engines may share the data,
each through its own handle.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.clock import Clock
from windlass.ports.loop_time import give_way_if_long
from windlass.store.sql.snapshot import Snapshot, take_snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.sqlite.connection import open_memory
from windlass.store.sqlite.roles import roles_over
from windlass.store.sqlite.session import Sequences, SqliteSession, drive
from windlass.store.sqlite.statements import QUERIES
from windlass.store.store import Hearers, News

T = TypeVar("T")

_BEGIN = QUERIES["begin"]
_COMMIT = QUERIES["commit"]
_ROLL_BACK = QUERIES["roll_back"]


class Shared:
    """What all handles on one memory store have in common."""

    def __init__(self, clock: Clock) -> None:
        self.connection = open_memory()
        self.sequences = Sequences()
        self.session = SqliteSession(self.connection, self.sequences)
        self.handles: list[MemoryStore] = []
        self._clock = clock
        self._now = 0
        self.committing = False
        # Refuse writes outside a transaction, which would commit by themselves.
        self.connection.set_commit_hook(lambda: not self.committing)

    def tell_time(self) -> int:
        """Returns the clock's time, but never one earlier than before."""
        self._now = max(self._now, self._clock.now_ms())
        return self._now


class MemoryStore:
    """One engine's handle on data in memory; `attach` makes one for another engine."""

    def __init__(
        self, clock: Clock, server: str = "s1", shared: bool = False, data: Shared | None = None
    ) -> None:
        self._clock = clock
        self._shared = shared
        self._is_open = True
        self.hearers = Hearers()
        self._data = data or Shared(clock)
        self._data.handles.append(self)
        self._tx = roles_over(self._data.session, server)

    def attach(self, server: str) -> "MemoryStore":
        """Returns another handle on the same data, with its own counters and subscribers, closed by
        itself.
        """
        return MemoryStore(self._clock, server, shared=True, data=self._data)

    @property
    def shared(self) -> bool:
        return self._shared or len(self._data.handles) > 1

    @property
    def inline(self) -> bool:
        return True

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        del rows  # never in a thread: this store holds little data
        self._tx.places.begin()
        return self._run(work, keep=True)

    async def now(self) -> int:
        self._check_open()
        return self._data.tell_time()

    async def read(self, work: Callable[[ReadTx], Awaitable[T]], rows: int = 0) -> T:
        del rows  # There is no second connection that a thread could use.
        await give_way_if_long()
        return self._run(work, keep=False)

    async def snapshot(self) -> Snapshot:
        return self._run(lambda _: take_snapshot(self._data.session), keep=False)

    async def read_beside(self, work: Callable[[ReadTx, Snapshot], Awaitable[T]]) -> T:
        session = self._data.session

        async def beside(tx: ReadTx) -> T:
            return await work(tx, await take_snapshot(session))

        return self._run(beside, keep=False)

    def announce(self, news: News) -> None:
        for handle in list(self._data.handles):
            if handle is not self:
                handle.hearers.tell(news)

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        return self.hearers.add(hear)

    async def close(self) -> None:
        """Closes this handle; the data stays for the others, and for those attached later."""
        if self._is_open:
            self._is_open = False
            self._data.handles.remove(self)

    def _run(self, work: Callable[[WriteTx], Awaitable[T]], keep: bool) -> T:
        self._check_open()
        data = self._data
        connection = data.connection
        if connection.in_transaction:
            raise RuntimeError("a store transaction began inside another one")
        connection.execute(_BEGIN)
        try:
            changes = connection.total_changes()
            result = drive(work(self._tx.at(data.tell_time())))
            if not keep and connection.total_changes() != changes:
                raise RuntimeError("a transaction that only reads has changed rows")
            if keep:
                data.committing = True
                connection.execute(_COMMIT)
                data.sequences.committed()
            return result
        finally:
            # After a commit there is nothing left to roll back.
            data.committing = False
            data.sequences.rolled_back()
            if connection.in_transaction:
                connection.execute(_ROLL_BACK)

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("this handle on the memory store was closed", False)
