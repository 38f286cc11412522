"""Waits on the event loop, whose clock the simulator controls.

For retries deep inside an implementation that has no `Clock`. Code that has one uses it.
"""

import asyncio


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
