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
    WrongServer,
)
from windlass.ports.loop_time import pass_time

T = TypeVar("T")

RECONNECT_SECONDS: Final = 60.0
# A submission is often part of a web request, and may not take much longer than one.
SUBMIT_SECONDS: Final = 5.0
JOBS_PER_SECOND: Final = 100  # of a submission, which extend its time limit
LAST_TRY_S: Final = 0.5  # the time of a try that begins when time is nearly up
PAUSES_S: Final = (0.1, 0.3, 1.0)  # between the first tries
MAX_PAUSE_S: Final = 2.0
PASSES: Final = (Unreachable, StoreUnavailable, Overloaded)

log = logging.getLogger("windlass.client")


class Reconnect:
    """How long a client retries while its server is away; 0: not at all."""

    def __init__(self, seconds: float = RECONNECT_SECONDS) -> None:
        if not seconds >= 0:
            raise InvalidInput("reconnect", "seconds, 0 or more", seconds)
        self._seconds = seconds
        self._answered = False

    def note_answer(self) -> None:
        """Notes that a server has answered, so that it is worth waiting for."""
        self._answered = True

    async def insist(
        self,
        call: Callable[[], Awaitable[T]],
        seconds: float | None = None,
        began: float | None = None,
    ) -> T:
        """Makes a call that is safe to repeat, until the server answers or time is up.

        If no server has answered this client yet, a call that cannot connect fails at once. The
        limit is this client's, or `seconds`; it counts from the first failure, or from `began` on
        the loop's clock.
        """
        try:
            answer = await call()
        except PASSES as error:
            if not self._may_pass(error):
                raise
            own = self._seconds if seconds is None else seconds
            start = asyncio.get_running_loop().time() if began is None else began
            return await self._repeat(call, error, own, start)
        except WindlassError:
            self._answered = True
            raise
        self._answered = True
        return answer

    async def within(
        self, seconds: float | None, call: Callable[[float | None], Awaitable[T]]
    ) -> T:
        """Makes a call within a total time; None: as long as other calls. `call` gets the seconds
        that are left.
        """
        if seconds is None:
            return await self.insist(lambda: call(None))
        clock = asyncio.get_running_loop()
        began = clock.time()
        end, least = began + seconds, min(seconds, LAST_TRY_S)
        return await self.insist(lambda: call(max(end - clock.time(), least)), seconds, began)

    async def _repeat(
        self, call: Callable[[], Awaitable[T]], error: WindlassError, seconds: float, began: float
    ) -> T:
        clock = asyncio.get_running_loop()
        end = began + seconds
        unknown = _is_unknown(error)
        if clock.time() < end:
            log.warning("windlass: %s; trying again for %g s", error, end - clock.time())
        for pause in chain(PAUSES_S, repeat(MAX_PAUSE_S)):
            left = end - clock.time()
            if left <= 0:
                break
            await pass_time(min(max(pause, _asked_for(error)), left))
            try:
                answer = await call()
            except PASSES as again:
                error = again
                unknown = unknown or _is_unknown(error)
                continue
            self._answered = True
            return answer
        raise _given_up(error, seconds, unknown) from error

    def _may_pass(self, error: WindlassError) -> bool:
        """Returns whether a server is known to be there, so that it may come back."""
        if isinstance(error, WrongServer):
            return False
        if not isinstance(error, Unreachable) or error.sent:
            self._answered = True
        return self._answered and self._seconds > 0


def _given_up(error: WindlassError, seconds: float, unknown: bool) -> WindlassError:
    message = f"gave up after {seconds:g} s: {error}"
    if isinstance(error, Unreachable):
        return Unreachable(message, unknown)
    if isinstance(error, StoreUnavailable):
        return StoreUnavailable(message, unknown)
    return error


def _is_unknown(error: WindlassError) -> bool:
    """Returns whether the server may have carried out a call that failed."""
    if isinstance(error, Unreachable):
        return error.sent
    return isinstance(error, StoreUnavailable) and error.outcome_unknown


def _asked_for(error: WindlassError) -> float:
    """Returns how many seconds the server asked to wait."""
    return error.retry_after_ms / 1000 if isinstance(error, Overloaded) else 0.0
