"""The loops that add up the log: statistics of completed attempts, and counts over time."""

from functools import partial

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.history import series
from windlass.engine.history.statistics import account, forget, pass_over

MAX_EVENTS = 50_000  # events per round; if there are more, only the newest count
MAX_COUNTED = 200_000  # events per round


class StatisticsReport(msgspec.Struct, frozen=True):
    """How many events one round accounted for, and how many it skipped."""

    events: int
    passed_over: int


class StatisticsLoop:
    """Collects statistics. Safe to run on every server at once."""

    name = "statistics"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = engine.config.statistics_interval_ms

    async def run_once(self, now: int) -> StatisticsReport:
        """Runs one round of small transactions."""
        engine = self._engine
        passed_over = await engine.run(partial(pass_over, most=MAX_EVENTS))
        events = 0
        chunk = engine.config.chunk_rows
        while events < 2 * MAX_EVENTS and (
            some := await engine.run(partial(account, events=chunk))
        ):
            events += some
        if events:
            await engine.run(forget)
        engine.counters.ran(self.name, now)
        return StatisticsReport(events, passed_over)


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
        while events < MAX_COUNTED:
            counted = await engine.run(partial(series.account, events=chunk))
            events += counted.events
            if not counted.more:
                break
        await engine.run(lambda work: work.tx.log.fold())
        engine.counters.ran(self.name, now)
        return SeriesReport(events)
