"""Who runs the loops: servers always, workers beside the store only while there is no server.

Servers leave a sign of life in the store. A worker that has the store itself looks for it,
takes the loops up when it grows old, and lays them down when it is fresh again. The loops
are safe to run in several places, so nobody needs to agree on the moment.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import structlog

from windlass.engine.engine import Engine
from windlass.engine.loops.ticker import Loop, Ticker
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.clock import Clock
from windlass.ports.store import ReadTx

SIGN: Final = "served_at"
SIGN_MS: Final = 2_000  # how often a server gives its sign
LOOK_MS: Final = 1_000
# Together with the interval of the health loop this stays below the gap after which leases
# are given a grace, so a worker that takes over in time delays nothing.
ABSENT_MS: Final = 6_000

log = structlog.get_logger()


class Duty:
    """The loops as one, which can be taken up and laid down again."""

    def __init__(
        self, loops: Callable[[], Sequence[Loop[Any]]], clock: Clock, limit_ms: int
    ) -> None:
        self._loops = loops
        self._clock = clock
        self._limit_ms = limit_ms
        self._tickers: list[Ticker[Any]] = []

    @property
    def taken(self) -> bool:
        """Whether the loops run here."""
        return bool(self._tickers)

    def take_up(self) -> None:
        """Run the loops."""
        if not self._tickers:
            self._tickers = [Ticker(loop, self._clock) for loop in self._loops()]
            for ticker in self._tickers:
                ticker.start()

    async def lay_down(self) -> None:
        """Stop the loops, each after its present round."""
        tickers, self._tickers = self._tickers, []
        for ticker in tickers:
            await ticker.stop(self._limit_ms)


class Sign(msgspec.Struct, frozen=True):
    """What one round said."""

    at: int


class Presence:
    """A server's sign of life."""

    name = "presence"
    interval_ms = SIGN_MS

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run_once(self, now: int) -> Sign:
        """Say that a server is alive at this time of the store."""
        del now
        return Sign(await self._engine.run(_give_sign))


class Watch(msgspec.Struct, frozen=True):
    """What one round saw: how old the newest sign of a server is (-1: none), and whose the
    loops are."""

    age_ms: int
    taken: bool


class Standby:
    """Takes the loops up while no server is alive."""

    name = "standby"
    interval_ms = LOOK_MS

    def __init__(self, engine: Engine, duty: Duty) -> None:
        self._engine = engine
        self._duty = duty

    async def run_once(self, now: int) -> Watch:
        """Look for a server, and act."""
        del now
        age = await self._engine.store.read(_age_of_sign)
        absent = not 0 <= age < ABSENT_MS
        if absent != self._duty.taken:
            log.info("loops_taken_up" if absent else "loops_laid_down", sign_age_ms=age)
        if absent:
            self._duty.take_up()
        else:
            await self._duty.lay_down()
        return Watch(age, self._duty.taken)


async def _give_sign(work: Work) -> int:
    await work.tx.catalog.set_meta(SIGN, work.now)
    return work.now


async def _age_of_sign(tx: ReadTx) -> int:
    sign = (await tx.catalog.meta()).get(SIGN)
    return -1 if sign is None else max(0, tx.now - sign)
