"""The ticker around every loop: run, wait, run again, until stopped."""

import asyncio
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from windlass.domain.values.errors import WindlassError
from windlass.engine.transaction.counters import Counters
from windlass.ports.clock import Clock
from windlass.ports.loop_time import DOING

R_co = TypeVar("R_co", covariant=True)

log = structlog.get_logger()


class Loop(Protocol[R_co]):
    """A maintenance loop: one round at a time."""

    name: str
    interval_ms: int

    async def run_once(self, now: int) -> R_co:
        """Runs one round at the store's or clock's time `now`."""
        ...


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
