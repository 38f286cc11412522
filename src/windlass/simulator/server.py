"""A simulated server: the production engine and its loops. It can be killed."""

from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any

from windlass.domain.values.errors import WindlassError
from windlass.engine.engine import Engine
from windlass.engine.loops.capability import CapabilityLoop
from windlass.engine.loops.health import HealthLoop
from windlass.engine.loops.scheduling import CleanupLoop, SchedulingLoop
from windlass.engine.loops.statistics import StatisticsLoop
from windlass.engine.loops.ticker import Loop, Ticker
from windlass.simulator.stores import FaultyStore, StoreFaults
from windlass.simulator.virtual_loop import OWNER
from windlass.simulator.world import SeededChance, World
from windlass.store.store import Store


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
