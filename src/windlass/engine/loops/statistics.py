"""The statistics loop: run times and memory of completed attempts, from the log."""

from functools import partial

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.history.statistics import account, forget, pass_over

MAX_EVENTS = 50_000  # events per round; if there are more, only the newest count


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
