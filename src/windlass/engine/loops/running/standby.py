"""Decides who runs the loops: servers always, workers on the store only without a server.

Servers write a heartbeat to the store. A worker that works directly on the store reads it, starts
the loops when it grows old, and stops them when it is fresh again. The loops are safe to run in
several places, so nobody needs to agree on the moment.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import structlog

from windlass.engine.engine import Engine
from windlass.engine.loops.running.ticker import Loop, Ticker
from windlass.engine.transaction.counters import Counters
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.clock import Clock
from windlass.store.sql.transaction import ReadTx

HEARTBEAT: Final = "served_at"
HEARTBEAT_MS: Final = 2_000
LOOK_MS: Final = 1_000
# Together with the health loop's interval this is less than the gap after which leases get a grace
# period, so a worker that takes over in time delays nothing.
ABSENT_MS: Final = 6_000

log = structlog.get_logger()


class LoopGroup:
    """Starts and stops all loops together."""

    def __init__(
        self,
        loops: Callable[[], Sequence[Loop[Any]]],
        clock: Clock,
        limit_ms: int,
        counters: Counters | None = None,
    ) -> None:
        """Takes the `counters` that record how each round went."""
        self._loops = loops
        self._counters = counters
        self._clock = clock
        self._limit_ms = limit_ms
        self._tickers: list[Ticker[Any]] = []

    @property
    def running(self) -> bool:
        """Returns True if the loops run here."""
        return bool(self._tickers)

    def start(self) -> None:
        """Starts the loops, unless they run already."""
        if not self._tickers:
            self._tickers = [Ticker(loop, self._clock, self._counters) for loop in self._loops()]
            for ticker in self._tickers:
                ticker.start()

    async def stop(self) -> None:
        """Stops the loops, each after its current round."""
        tickers, self._tickers = self._tickers, []
        for ticker in tickers:
            await ticker.stop(self._limit_ms)


class HeartbeatReport(msgspec.Struct, frozen=True):
    """When the heartbeat was written, in the store's time."""

    at: int


class ServerHeartbeat:
    """Writes the heartbeat of a server."""

    name = "presence"
    interval_ms = HEARTBEAT_MS

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run_once(self, now: int) -> HeartbeatReport:
        """Writes one heartbeat."""
        del now
        return HeartbeatReport(await self._engine.run(_write_heartbeat))


class StandbyReport(msgspec.Struct, frozen=True):
    """How old the newest heartbeat of a server is, if any, and whether the loops run here."""

    age_ms: int | None
    running: bool


class Standby:
    """Runs the loops while no server is alive."""

    name = "standby"
    interval_ms = LOOK_MS

    def __init__(self, engine: Engine, loops: LoopGroup) -> None:
        self._engine = engine
        self._loops = loops

    async def run_once(self, now: int) -> StandbyReport:
        """Looks for a server, and starts or stops the loops."""
        del now
        age = await self._engine.store.read(_heartbeat_age)
        absent = age is None or age >= ABSENT_MS
        if absent != self._loops.running:
            log.info("loops_started" if absent else "loops_stopped", heartbeat_age_ms=age)
        if absent:
            self._loops.start()
        else:
            await self._loops.stop()
        return StandbyReport(age, self._loops.running)


async def _write_heartbeat(work: Work) -> int:
    await work.tx.catalog.set_meta(HEARTBEAT, work.now)
    return work.now


async def _heartbeat_age(tx: ReadTx) -> int | None:
    at = (await tx.catalog.meta()).get(HEARTBEAT)
    return None if at is None else max(0, tx.now - at)
