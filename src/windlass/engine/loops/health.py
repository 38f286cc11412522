"""The health loop: silent workers, suspected ones, and attempts past their deadline."""

import msgspec

from windlass.domain.config import health_pause_ms
from windlass.engine.engine import Engine
from windlass.engine.fleet.lost_workers import end_overdue, judge_silence, note_server_alive
from windlass.engine.fleet.probation import judge_conduct


class HealthReport(msgspec.Struct, frozen=True):
    """What one round found. With `in_grace`, no lease or deadline ends yet after an outage."""

    unhealthy: int
    lost: int
    orphans: int
    timed_out: int
    in_grace: bool
    suspected: int = 0  # put on probation


class HealthLoop:
    """Marks silent workers, ends lost incarnations, times out attempts, and judges workers."""

    name = "health"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = health_pause_ms(engine.config)

    async def run_once(self, now: int) -> HealthReport:
        """Runs one round in several transactions, each on a bounded number of rows."""
        engine = self._engine
        may_end = await engine.run(note_server_alive)
        unhealthy = lost = orphans = 0
        while True:
            silence = await engine.run(lambda work: judge_silence(work, engine.last_heard, may_end))
            unhealthy += silence.unhealthy
            lost += silence.lost
            orphans += silence.orphans
            if silence.lost < engine.config.chunk_rows:
                break
        timed_out = await engine.exhaust(end_overdue) if may_end else 0
        conduct = await engine.run(judge_conduct)
        engine.counters.ran(self.name, now)
        return HealthReport(
            unhealthy, lost, orphans, timed_out, not may_end, suspected=conduct.suspected
        )
