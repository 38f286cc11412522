"""Work of an attempt that must end before anything is started, and that a stop ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from windlass.worker.keeper.kept_process import Fenced

Done = TypeVar("Done")


async def unless_stopped(work: Coroutine[Any, Any, Done], stopping: asyncio.Event) -> Done:
    """Waits for the work; raises `Fenced` if the attempt is stopped before it ends."""
    loop = asyncio.get_running_loop()
    working = loop.create_task(work)
    stopped = loop.create_task(stopping.wait())
    try:
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopped.cancel()
    if stopping.is_set():
        await asyncio.wait((working,))
        raise Fenced("the attempt is being stopped")
    return working.result()
