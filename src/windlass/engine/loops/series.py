"""The series loop: counts over time, added up from the log."""

from functools import partial

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.history.series import account

MAX_EVENTS = 200_000  # events per round


class SeriesReport(msgspec.Struct, frozen=True):
    """How many events one round counted."""

    events: int


class SeriesLoop:
    """Adds up the series. Safe to run on every server at once."""

    name = "series"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = engine.config.series_interval_ms

    async def run_once(self, now: int) -> SeriesReport:
        """Runs one round of small transactions."""
        engine = self._engine
        events = 0
        chunk = engine.config.chunk_rows
        while events < MAX_EVENTS:
            counted = await engine.run(partial(account, events=chunk))
            events += counted.events
            if not counted.more:
                break
        engine.counters.ran(self.name, now)
        return SeriesReport(events)
