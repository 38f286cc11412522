"""Tasks that the engine starts beside its commands, such as announcing a commit."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class BackgroundTasks:
    """Starts tasks and keeps them until they end.

    Errors are dropped: if the store was unavailable, the loops take up the work again.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Starts a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def finish(self) -> None:
        """Waits until no task is left, including those that were started meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()
