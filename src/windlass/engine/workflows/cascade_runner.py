"""Working off intents in the background, one step after the other, until none is left."""

import asyncio
from collections.abc import Awaitable, Callable


class WorkingOff:
    """One task at a time. `step` does one step, and says whether there was anything to do."""

    def __init__(self, step: Callable[[], Awaitable[bool]]) -> None:
        self._step = step
        self._more = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """There is something to do, or there may be."""
        self._more = True  # also for a task that has just looked for the last time
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def settled(self) -> None:
        """Wait until everything known so far is done; raises what stood in the way."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        while self._more:
            self._more = False
            while await self._step():
                pass
