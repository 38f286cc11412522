"""Waits on the event loop, whose clock the simulator controls, and shares it with others.

For retries deep inside an implementation that has no `Clock`. Code that has one uses it.
"""

import asyncio
from collections.abc import Generator
from contextvars import ContextVar
from typing import Final

# What the running task works on: a route, or a loop. Tasks that it starts work on the same.
DOING: Final[ContextVar[str]] = ContextVar("windlass_doing", default="other")


class _Turn:
    """Waits for nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def give_way() -> None:
    """Lets all others on the loop that are ready go first."""
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
