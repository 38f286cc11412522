"""Engines on stores, opened and closed for a benchmark."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.engine.engine import Engine
from windlass.ports.clock import Clock
from windlass.store.sqlite.store import SqliteStore


class StillClock:
    """A clock that stands, so that two runs write the same times."""

    def now_ms(self) -> int:
        return 1_700_000_000_000

    async def sleep_ms(self, duration_ms: int) -> None:
        raise RuntimeError(f"nothing may wait on a clock that stands, not even {duration_ms} ms")


@asynccontextmanager
async def open_sqlite(path: Path, clock: Clock) -> AsyncIterator[Engine]:
    """An engine on a new or existing file."""
    store = SqliteStore.open(path, clock)
    engine = Engine(store, Config(), RealChance())
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()
        await store.close()


def sqlite_writer(engine: Engine) -> apsw.Connection:
    """The connection on which an engine's store writes, to be watched."""
    writer: apsw.Connection = getattr(engine.store, "_writer")  # noqa: B009
    return writer
