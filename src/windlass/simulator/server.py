"""A simulated server: the production engine and its loops, over the store of the run.

It can be killed. The store is SQLite, in memory for one or two engines, or in a file for one, and
fails as the scenario says: before or after a commit, slowly, or for good.
"""

from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct

from windlass.domain.values.errors import StoreUnavailable, WindlassError
from windlass.engine.engine import Engine
from windlass.engine.loops.capability import CapabilityLoop
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop, SchedulingLoop
from windlass.engine.loops.statistics import StatisticsLoop
from windlass.engine.loops.ticker import Loop, Ticker
from windlass.simulator.virtual_loop import OWNER
from windlass.simulator.world import SeededChance, World
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.sqlite.memory import MemoryStore
from windlass.store.sqlite.store import SqliteStore
from windlass.store.store import News, Store

T = TypeVar("T")


class StoreFaults(Struct, frozen=True):
    """How often the store fails, as probabilities, and its longest delay."""

    fails_before: float = 0.0
    fails_after: float = 0.0
    dies_after: float = 0.0  # the engine is killed between commit and answer
    loses_news: float = 0.0
    latency_ms: int = 0


class FaultyStore:
    """A `Store` over another one, as one engine sees it."""

    def __init__(
        self, world: World, inner: Store, faults: StoreFaults, kill: Callable[[], None]
    ) -> None:
        self._world = world
        self._inner = inner
        self._faults = faults
        self._kill = kill
        self._dead = False

    @property
    def shared(self) -> bool:
        return self._inner.shared

    @property
    def inline(self) -> bool:
        return self._inner.inline

    def die(self) -> None:
        """Cuts off a killed engine: nothing that it still tries has an effect."""
        self._dead = True

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        await self._pass_time()
        self._check()
        if self._world.fault("store_fails_before", self._faults.fails_before):
            raise StoreUnavailable("simulated: refused", outcome_unknown=False)
        answer = await self._inner.transact(work, rows)
        if self._world.fault("store_fails_after", self._faults.fails_after):
            raise StoreUnavailable("simulated: no answer", outcome_unknown=True)
        if self._world.fault("killed_after_commit", self._faults.dies_after):
            self._kill()
            raise StoreUnavailable("simulated: killed", outcome_unknown=True)
        await self._pass_time()
        return answer

    async def now(self) -> int:
        self._fail_reading()
        return await self._inner.now()

    async def read(self, work: Callable[[ReadTx], Awaitable[T]], rows: int = 0) -> T:
        self._fail_reading()
        return await self._inner.read(work, rows)

    async def snapshot(self) -> Snapshot:
        return await self._inner.snapshot()

    async def read_beside(self, work: Callable[[ReadTx, Snapshot], Awaitable[T]]) -> T:
        return await self._inner.read_beside(work)

    def announce(self, news: News) -> None:
        if not self._dead:
            self._world.after(self._world.between(0, 20), self._deliver, news)

    def _deliver(self, news: News) -> None:
        if not self._world.fault("news_lost", self._faults.loses_news):
            self._inner.announce(news)

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        mine = copy_context()  # so that the rest does not run on behalf of the caller

        def listen(news: News) -> None:
            if not self._dead:
                self._world.loop.call_soon(hear, news, context=mine)

        return self._inner.subscribe(listen)

    async def close(self) -> None:
        await self._inner.close()

    async def _pass_time(self) -> None:
        most = self._faults.latency_ms
        if most and not self._world.calm:
            await self._world.clock.sleep_ms(self._world.between(0, most))

    def _fail_reading(self) -> None:
        self._check()
        if self._world.fault("store_fails_reading", self._faults.fails_before):
            raise StoreUnavailable("simulated: refused", outcome_unknown=False)

    def _check(self) -> None:
        if self._dead:
            raise StoreUnavailable("simulated: this engine is dead", outcome_unknown=False)


StoreKind = Literal["memory", "sqlite"]


class Stores:
    """Gives each starting engine a handle; `view` reads beside them."""

    def __init__(self, world: World, kind: StoreKind, engines: int, folder: Path) -> None:
        self._world = world
        self._kind = kind
        self._engines = engines
        self._path = folder / "windlass.db"
        self._memory = MemoryStore(world.clock)
        self.view: Store = self._memory

    def opener(self, server: str) -> Callable[[], Awaitable[Store]]:
        """Returns how an engine of this server gets its handle."""

        async def open_store() -> Store:
            if self._kind == "sqlite":
                await self.view.close()
                self.view = SqliteStore.open(self._path, self._world.clock, server)
                return self.view
            # A single engine owns the store, as it would own a file.
            return self._memory if self._engines == 1 else self._memory.attach(server)

        return open_store

    @property
    def survives_engine(self) -> bool:
        """Returns True if the handle is shared, and so stays open when an engine is killed."""
        return self._kind == "memory" and self._engines == 1


class Server:
    """One engine after another on one store; `engine` is None while it is down.

    `open_store` returns a handle for one engine; a crash closes it, unless the handle survives.
    """

    def __init__(
        self, world: World, name: str, open_store: Callable[[], Awaitable[Store]],
        faults: StoreFaults, store_survives: bool,
    ) -> None:  # fmt: skip
        self.name = name
        self.engine: Engine | None = None
        self.context: Context = copy_context()
        self._world = world
        self._open_store = open_store
        self._faults = faults
        self._store_survives = store_survives
        self._store: FaultyStore | None = None
        self._tickers: list[Ticker[Any]] = []

    async def start(self) -> None:
        """Opens the store and runs an engine over it, trying until the store answers."""
        inner = await self._open_store()
        self.context = copy_context()
        owner = object()
        self.context.run(OWNER.set, owner)
        store = FaultyStore(self._world, inner, self._faults, self._die_and_return)
        self._store = store
        await self.context.run(self._world.loop.create_task, self._begin(store))

    async def _begin(self, store: FaultyStore) -> None:
        engine = Engine(store, self._world.config, SeededChance(self._world.chance))
        while True:
            try:
                await engine.start()
                break
            except WindlassError:
                await self._world.clock.sleep_ms(100)
        loops: tuple[Loop[Any], ...] = (
            SchedulingLoop(engine),
            HealthLoop(engine),
            CleanupLoop(engine),
            CapabilityLoop(engine),
            StatisticsLoop(engine),
        )
        self._tickers = [Ticker(loop, self._world.clock) for loop in loops]
        for ticker in self._tickers:
            ticker.start()
        self.engine = engine

    def crash(self) -> None:
        """Kills it (kill −9): every task ends at once, and the engine never writes again."""
        self.engine = None
        if self._store is not None:
            self._store.die()
            if not self._store_survives:
                self._world.spawn(self._store.close())
            self._store = None
        owner = self.context.get(OWNER)
        if owner is not None:
            for task in self._world.loop.tasks_of(owner):
                task.cancel()

    def restart(self) -> None:
        """Starts it again if it is down."""
        if self.engine is None and self._store is None:
            self._world.spawn(self.start())

    def _die_and_return(self) -> None:
        self.crash()
        self._world.after(self._world.between(100, 8_000), self.restart)

    async def stop(self) -> None:
        """Stops as a server does on SIGTERM."""
        if self.engine is None:
            return
        for ticker in self._tickers:
            await ticker.stop(self._world.config.drain_limit_ms)
        await self.engine.close()
        self.engine = None
