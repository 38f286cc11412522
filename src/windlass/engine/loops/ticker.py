"""Runs the loops: the ticker around each, and who runs them.

Servers always do, workers on the store only without a server. Servers write a heartbeat to the
store. A worker that works directly on the store reads it, starts the loops when it grows old, and
stops them when it is fresh again. The loops are safe to run in several places, so nobody needs to
agree on the moment.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
import structlog

from windlass.domain.values.errors import WindlassError
from windlass.engine.engine import Engine
from windlass.engine.transaction.effects import Counters
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.clock import Clock
from windlass.ports.loop_time import DOING
from windlass.store.sql.transaction import ReadTx

R_co = TypeVar("R_co", covariant=True)
log = structlog.get_logger()
HEARTBEAT: Final = "served_at"
HEARTBEAT_MS: Final = 2_000
LOOK_MS: Final = 1_000
# Together with the health loop's interval this is less than the gap after which leases get a grace
# period, so a worker that takes over in time delays nothing.
ABSENT_MS: Final = 6_000


class Loop(Protocol[R_co]):
    """A maintenance loop: one round at a time."""

    name: str
    interval_ms: int

    async def run_once(self, now: int) -> R_co:
        """Runs one round at the store's or clock's time `now`."""


class Ticker(Generic[R_co]):
    """Runs one loop until it is stopped; a started round is finished first."""

    def __init__(self, loop: Loop[R_co], clock: Clock, counters: Counters | None = None) -> None:
        """Takes the `counters` that record how each round went."""
        self._loop = loop
        self._counters = counters
        self._clock = clock
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failed: str | None = None  # why the last round failed

    def start(self) -> None:
        """Starts the first round."""
        self._task = asyncio.get_running_loop().create_task(self._tick())

    def stop_soon(self) -> None:
        """Starts no further round."""
        self._stopping.set()

    async def stop(self, limit_ms: int) -> None:
        """Stops after the present round, or when `limit_ms` have passed."""
        self.stop_soon()
        if self._task is None:
            return
        done, _ = await asyncio.wait([self._task], timeout=limit_ms / 1000)
        if not done:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tick(self) -> None:
        DOING.set(f"loop {self._loop.name}")
        while not self._stopping.is_set():
            began, failed = self._clock.now_ms(), False
            try:
                report = await self._loop.run_once(self._clock.now_ms())
                if isinstance(report, msgspec.Struct):
                    log.debug("loop ran", loop=self._loop.name, **msgspec.structs.asdict(report))
                self._note(None)
            except Exception as error:
                # The next round tries again: a loop never ends because a round failed.
                failed = True
                self._note(error)
            if self._counters is not None:
                took = max(0, self._clock.now_ms() - began)
                self._counters.end_round(self._loop.name, self._loop.interval_ms, took, failed)
            await self._pause()

    def _note(self, error: Exception | None) -> None:
        """Logs a failure once, however many rounds it lasts, and its end."""
        failed = None if error is None else f"{type(error).__name__}: {error}"
        if failed == self._failed:
            return
        self._failed = failed
        if error is None:
            log.info("loop recovered", loop=self._loop.name)
        elif isinstance(error, WindlassError):
            log.warning("loop failed", loop=self._loop.name, error=str(error))
        else:  # a bug of ours: the log says where
            log.error("loop failed", loop=self._loop.name, error=failed, exc_info=error)

    async def _pause(self) -> None:
        sleep = asyncio.ensure_future(self._clock.sleep_ms(self._loop.interval_ms))
        stop = asyncio.ensure_future(self._stopping.wait())
        _, pending = await asyncio.wait([sleep, stop], return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


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
