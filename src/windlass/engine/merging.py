"""Joining the small segments of logs that have ended, so that reading one needs few objects.

It happens behind everything else, one log at a time. Whatever is lost on the way, with the
server that did it, costs nothing but the objects: the bytes are read from either.
"""

import asyncio
from collections import deque
from typing import Final

import structlog

from windlass.domain.errors import WindlassError
from windlass.domain.files import LogRow
from windlass.engine.segments import Logs

FROM: Final = 16  # appends: a log of fewer is left as it is
MOST_WAITING: Final = 1_000
MOST_COUNTED: Final = 10_000

log = structlog.get_logger()


class Merging:
    """Counts the appends of logs, and joins those of the long ones when they end."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._appends: dict[tuple[int, int], int] = {}
        self._waiting: deque[LogRow] = deque(maxlen=MOST_WAITING)
        self._task: asyncio.Task[None] | None = None

    def appended(self, job: int, attempt: int) -> None:
        """A segment was written."""
        if len(self._appends) >= MOST_COUNTED:
            self._appends.clear()  # Of workers that were lost; what it costs is some merges.
        key = job, attempt
        self._appends[key] = self._appends.get(key, 0) + 1

    def is_due(self, job: int, attempt: int) -> bool:
        """Whether a log that has ended is long enough to be worth it; asked once."""
        return self._appends.pop((job, attempt), 0) >= FROM

    def ended(self, row: LogRow) -> None:
        """Join the segments of this log soon."""
        self._waiting.append(row)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                row = self._waiting.popleft()
                try:
                    await self._logs.merge(row)
                except WindlassError as error:
                    log.info("log_not_merged", job=row.job, reason=error.message)
        finally:
            self._task = None

    async def settled(self) -> None:
        """Wait until nothing is left to join."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        """Stop; what was not joined stays as it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
