"""The cron loop: slots that are due, and runs that waited for another to end."""

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.schedules.runs import Runs


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
        self.interval_ms = engine.config.cron_interval_ms

    async def run_once(self, now: int) -> CronReport:
        """Runs one round; the times are the store's."""
        chunk = self._engine.config.chunk_rows
        slots = started = 0
        for schedule in await self._runs.due(chunk):
            slots += await self._runs.note_slots(schedule)
        after = 0
        while waiting := await self._runs.waiting(after, chunk):
            for schedule in waiting:
                started += await self._runs.advance(schedule)
            after = waiting[-1]
        self._engine.counters.ran(self.name, now)
        return CronReport(slots, started)
