"""Waiting on the event loop."""

import asyncio
from typing import Any

import uvloop

from windlass.ports.loop_time import pass_time


def test_a_wait_that_is_cancelled_as_it_ends_reports_no_error() -> None:
    """uvloop runs a due timer before the task that was cancelled can take it back."""
    reported: list[Any] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        waiting = loop.create_task(pass_time(0.001))
        begun = asyncio.Event()
        loop.call_soon(begun.set)
        await begun.wait()
        due = loop.time() + 0.01
        while loop.time() < due:
            pass  # the timer is due, and the loop has not looked at it yet
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()

    uvloop.run(scenario())
    assert reported == []
