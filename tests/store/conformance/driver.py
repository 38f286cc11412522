"""Drive any store from a plain test function: one event loop for each test.

A test says `store.transact(lambda tx: tx.jobs.allocate(3))`; whether the store suspends
or not makes no difference to it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest
import uvloop

from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.sqlite.memory import MemoryStore
from windlass.store.store import Store

T = TypeVar("T")

START_MS = 1_700_000_000_000


class SettableClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    async def sleep_ms(self, duration_ms: int) -> None:
        self.ms += duration_ms


class Driver(ABC):
    """A store under test, its event loop and its clock. Close it by leaving `with`."""

    kind: str

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._companions: list[Store] = []
        try:
            self.store: Store = self.run(self._open("s1"))
        except BaseException:
            self._runner.close()
            raise

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        # Not through the runner: with each call it would set a signal handler, for which Python
        # writes out the task and its result, a whole snapshot.
        return self._runner.get_loop().run_until_complete(coroutine)

    def transact(self, work: Callable[[WriteTx], Awaitable[T]]) -> T:
        return self.run(_call(self.store.transact(work)))

    def read(self, work: Callable[[ReadTx], Awaitable[T]]) -> T:
        return self.run(_call(self.store.read(work)))

    def snapshot(self) -> Snapshot:
        return self.run(_call(self.store.snapshot()))

    def now(self) -> int:
        return self.transact(_tell_now)

    def reopen(self, server: str = "s1") -> None:
        """End this engine's access to the data and begin another one's."""
        self.store = self.run(self._reopen(server))

    def companion(self, server: str) -> Store | None:
        """Another engine's access to the same data beside this one, if the store has that."""
        store = self.run(self._open_companion(server))
        if store is not None:
            self._companions.append(store)
        return store

    def close(self) -> None:
        try:
            for store in (*self._companions, self.store):
                self.run(_call(store.close()))
        finally:
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _reopen(self, server: str) -> Store:
        await self.store.close()
        return await self._open(server)

    async def _open_companion(self, server: str) -> Store | None:
        return await self._open(server)

    @abstractmethod
    async def _open(self, server: str) -> Store:
        """A store over this driver's data, for the engine of this name."""

    @abstractmethod
    def set_clock(self, ms: int) -> None:
        """What the store's clock says from now on."""


class MemoryDriver(Driver):
    kind = "memory"

    def __init__(self) -> None:
        self._clock = SettableClock()
        self._first: MemoryStore | None = None
        super().__init__()

    async def _open(self, server: str) -> Store:
        if self._first is None:
            self._first = MemoryStore(self._clock, server)
            return self._first
        return self._first.attach(server)

    def set_clock(self, ms: int) -> None:
        self._clock.ms = ms


class SqliteDriver(Driver):
    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self._clock = SettableClock()
        self._path = path
        super().__init__()

    async def _open(self, server: str) -> Store:
        from windlass.store.sqlite.store import SqliteStore

        return SqliteStore.open(self._path, self._clock, server=server)

    async def _open_companion(self, server: str) -> Store | None:
        return None  # One server works on a file.

    def set_clock(self, ms: int) -> None:
        self._clock.ms = ms


class PostgresDriver(Driver):
    kind = "postgres"

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        super().__init__()
        self.set_clock(START_MS)

    async def _open(self, server: str) -> Store:
        from windlass.store.postgres.store import PostgresStore

        store = await PostgresStore.connect(self._dsn, server=server)
        await store.upgrade()
        return store

    def set_clock(self, ms: int) -> None:
        from windlass.store.postgres.store import PostgresStore

        assert isinstance(self.store, PostgresStore)
        self.run(self.store.set_clock(ms))


KINDS = ("memory", "sqlite", "postgres")


def refused() -> pytest.RaisesExc[Exception]:
    """Expect a store to refuse what is written; each does so with errors of its own kind."""
    return pytest.raises(Exception, match=r"(?s).+")


async def _call(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _tell_now(tx: ReadTx) -> int:
    return tx.now
