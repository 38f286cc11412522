"""Waits on the event loop, whose clock the simulator controls, and shares it with others.

For retries deep inside an implementation that has no `Clock`. Code that has one uses it.
"""

import asyncio
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Final

# What the running task works on: a route, or a loop. Tasks that it starts work on the same.
DOING: Final[ContextVar[str]] = ContextVar("windlass_doing", default="other")


SLICE_S: Final = 0.01  # of processor time, after which long work lets others go first


class _Turn:
    """Waits for nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class _Step:
    """The step of a task that runs now, and how much processor time it has taken."""

    def __init__(self) -> None:
        self.taken: Callable[[], float] = lambda: 0.0  # in seconds; a server measures it


STEP: Final = _Step()


async def give_way() -> None:
    """Lets all others on the loop that are ready go first."""
    await _Turn()


async def give_way_if_long() -> None:
    """Lets others go first if the running step has taken a while; for use in every long loop."""
    if STEP.taken() > SLICE_S:
        await _Turn()


async def pass_time(seconds: float) -> None:
    """Returns after so much time of the loop has passed."""
    loop = asyncio.get_running_loop()
    passed: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _wake, passed)
    try:
        await passed
    finally:
        timer.cancel()


def _wake(passed: asyncio.Future[None]) -> None:
    # A wait that was cancelled just now has not taken its timer back yet.
    if not passed.done():
        passed.set_result(None)
