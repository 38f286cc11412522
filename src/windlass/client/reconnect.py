"""Repeats calls that no server answered, within a time limit."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import Final, TypeVar

from windlass.domain.values.errors import (
    InvalidInput,
    Overloaded,
    StoreUnavailable,
    Unreachable,
    WindlassError,
)
from windlass.ports.loop_time import pass_time

T = TypeVar("T")

RECONNECT_SECONDS: Final = 60.0
PAUSES_S: Final = (0.1, 0.3, 1.0)  # between the first tries
LONGEST_PAUSE_S: Final = 2.0
PASSES: Final = (Unreachable, StoreUnavailable, Overloaded)

log = logging.getLogger("windlass.client")


class Reconnect:
    """How long one client tries again when its server is gone; 0: not at all."""

    def __init__(self, seconds: float = RECONNECT_SECONDS) -> None:
        if not seconds >= 0:
            raise InvalidInput("reconnect", "seconds, 0 or more", seconds)
        self._seconds = seconds
        self._answered = False

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Makes a call that is safe to repeat, until the server answers or time is up.

        A call that nobody heard fails at once if no server has answered this client yet.
        """
        try:
            answer = await call()
        except PASSES as error:
            if not self._may_pass(error):
                raise
            return await self._repeat(call, error)
        except WindlassError:
            self._answered = True
            raise
        self._answered = True
        return answer

    async def _repeat(self, call: Callable[[], Awaitable[T]], error: WindlassError) -> T:
        log.warning("windlass: %s; trying again for %g s", error, self._seconds)
        clock = asyncio.get_running_loop()
        end = clock.time() + self._seconds
        for pause in chain(PAUSES_S, repeat(LONGEST_PAUSE_S)):
            left = end - clock.time()
            if left <= 0:
                break
            await pass_time(min(max(pause, _asked_for(error)), left))
            try:
                answer = await call()
            except PASSES as again:
                error = again
                continue
            self._answered = True
            return answer
        raise self._given_up(error) from error

    def _may_pass(self, error: WindlassError) -> bool:
        """Returns whether a server is known to be there, so that it may come back."""
        if not isinstance(error, Unreachable) or error.sent:
            self._answered = True
        return self._answered and self._seconds > 0

    def _given_up(self, error: WindlassError) -> WindlassError:
        message = f"gave up after {self._seconds:g} s: {error}"
        if isinstance(error, Unreachable):
            return Unreachable(message, error.sent)
        if isinstance(error, StoreUnavailable):
            return StoreUnavailable(message, error.outcome_unknown)
        return error


def _asked_for(error: WindlassError) -> float:
    """Returns how many seconds the server asked to wait."""
    return error.retry_after_ms / 1000 if isinstance(error, Overloaded) else 0.0
