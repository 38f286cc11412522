"""Waits on the event loop, whose clock the simulator controls, and shares it with others.

For retries deep inside an implementation that has no `Clock`. Code that has one uses it.
"""

import asyncio
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Final, TypeVar

# What the running task works on: a route, or a loop. Tasks that it starts work on the same.
DOING: Final[ContextVar[str]] = ContextVar("windlass_doing", default="other")


T = TypeVar("T")

SMALL: Final = 2_000  # jobs, dependencies or rows that need no thread
SLICE_S: Final = 0.01  # of processor time, after which long work lets others go first


# Whether this runs inside a transaction that must reach its end without waiting.
INLINE: Final[ContextVar[bool]] = ContextVar("windlass_inline", default=False)


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
    """Lets all others on the loop that are ready go first; not from inside a transaction."""
    if not INLINE.get():
        await _Turn()


async def give_way_if_long() -> None:
    """Lets others go first if the running step has taken a while; for use in every long loop."""
    if not INLINE.get() and STEP.taken() > SLICE_S:
        await _Turn()


async def aside(weight: int, work: Callable[[], T]) -> T:
    """Does this in a thread if it is much, so that the loop goes on.

    The thread has the interpreter for 5 ms at a time. `work` touches nothing that others change.
    """
    if weight <= SMALL or INLINE.get():
        return work()
    from windlass.ports.gc_pause import gc_paused  # clients never come here

    with gc_paused():
        return await asyncio.get_running_loop().run_in_executor(None, work)


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
