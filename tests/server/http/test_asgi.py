"""Work for a client that may leave."""

import asyncio
import gc
from typing import Any

from tests.support.running import run
from windlass.domain.values.errors import StoreUnavailable
from windlass.server.http.asgi import unless_disconnected


async def _gone() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def _fail_when_cancelled() -> None:
    """As a call does that waits for a database which is away."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise StoreUnavailable("the database is away", outcome_unknown=False) from None


def test_an_error_that_nobody_is_left_to_hear_of_is_not_reported_as_forgotten() -> None:
    reported: list[dict[str, Any]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        assert await unless_disconnected(_fail_when_cancelled(), _gone) is None
        gc.collect()

    run(scenario())
    assert reported == []
