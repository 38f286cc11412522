"""Runs cascades in the background, one step after another, until none is left."""

import asyncio
from collections.abc import Awaitable, Callable


class CascadeRunner:
    """Runs one task at a time. `step` does one step and returns False if there was none."""

    def __init__(self, step: Callable[[], Awaitable[bool]]) -> None:
        self._step = step
        self._more = False
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Runs the cascades that exist or may exist."""
        if self._stopped:
            return
        self._more = True  # also for a task that has just checked for the last time
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def stop(self) -> None:
        """Starts nothing more; cascades stay in the store for the next engine."""
        self._stopped = True

    async def settled(self) -> None:
        """Waits until every cascade known so far is done. Raises the error of a failed step."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        while self._more:
            self._more = False
            while await self._step():
                pass
