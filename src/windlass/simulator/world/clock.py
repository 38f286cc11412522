"""The ports of time and chance, over the virtual loop and the seed."""

import asyncio
import random

START_MS = 1_700_000_000_000  # some moment; nothing may depend on which


class VirtualClock:
    """Milliseconds since 1970, as far as the simulation is concerned."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return START_MS + round(self._loop.time() * 1000)

    async def sleep_ms(self, duration_ms: int) -> None:
        woken: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(duration_ms / 1000, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()


class SeededChance:
    """Jitter from the one generator."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def fraction(self) -> float:
        return self._chance.random()


def _wake(sleeper: "asyncio.Future[None]") -> None:
    if not sleeper.done():
        sleeper.set_result(None)
