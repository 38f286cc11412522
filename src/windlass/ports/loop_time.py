"""Letting time pass on the event loop, whose clock the simulator moves.

For retries deep inside an implementation, which have no `Clock` at hand. Whatever has one
waits by it.
"""

import asyncio


async def pass_time(seconds: float) -> None:
    """Return once so much time of the loop has passed."""
    loop = asyncio.get_running_loop()
    passed: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, passed.set_result, None)
    try:
        await passed
    finally:
        timer.cancel()
