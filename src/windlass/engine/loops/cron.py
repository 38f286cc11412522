"""The cron loop: slots that are due, and runs that waited for another to end."""

from typing import Final

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.schedules.runs import Runs

MIN_PAUSE_MS: Final = 20  # between two rounds, also while a due slot cannot be recorded


class CronReport(msgspec.Struct, frozen=True):
    """What one round did."""

    slots: int
    started: int


class CronLoop:
    """Runs schedules. Safe on every server at once: each slot has one row and one start."""

    name = "cron"

    def __init__(self, engine: Engine, runs: Runs) -> None:
        self._engine = engine
        self._runs = runs
        self.interval_ms = engine.config.cron_interval_ms  # less if a slot comes earlier

    async def run_once(self, now: int) -> CronReport:
        """Runs one round; the times are the store's."""
        chunk = self._engine.config.chunk_rows
        self.interval_ms = self._engine.config.cron_interval_ms
        slots = started = 0
        for schedule in await self._runs.due(chunk):
            slots += await self._runs.note_slots(schedule)
        after = 0
        while waiting := await self._runs.waiting(after, chunk):
            for schedule in waiting:
                started += await self._runs.advance(schedule)
            after = waiting[-1]
        until_next = await self._runs.until_next()
        if until_next is not None:
            self.interval_ms = min(self.interval_ms, max(MIN_PAUSE_MS, until_next))
        self._engine.counters.ran(self.name, now)
        return CronReport(slots, started)
