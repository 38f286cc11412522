"""The store of one run: in memory for one or two engines, or a SQLite file for one."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from windlass.ports.store import Store
from windlass.simulator.world.world import World
from windlass.store.memory.store import MemoryStore
from windlass.store.sqlite.store import SqliteStore

StoreKind = Literal["memory", "sqlite"]


class Stores:
    """Hands out a handle to each engine that starts; `view` reads beside them."""

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
            # One engine alone has the store for itself, as it would have a file.
            return self._memory if self._engines == 1 else self._memory.attach(server)

        return open_store

    @property
    def survives_engine(self) -> bool:
        """Whether the handle is not an engine's own, and stays open when that is killed."""
        return self._kind == "memory" and self._engines == 1
