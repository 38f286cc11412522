"""Wait for something outside this process, for a bounded time."""

import asyncio
from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.05


async def until(
    what: str, check: Callable[[], Awaitable[bool]], seconds: float, every: float = POLL_SECONDS
) -> None:
    """Return once `check` says so; raise, naming `what` was waited for, when it does not."""
    try:
        async with asyncio.timeout(seconds):
            while not await check():  # noqa: ASYNC110 - it happens in other processes
                await asyncio.sleep(every)
    except TimeoutError:
        raise AssertionError(f"gave up after {seconds} s waiting for: {what}") from None
