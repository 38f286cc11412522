"""The loops behind the event-driven path: scheduling, health of workers, and cleanup.

Jobs move without the scheduling loop. It picks up what a crash or a lost notification left behind:
intents, room under limits, due jobs, signals that were not delivered to all, functions whose
children have ended, waiting syncs that were not woken. Health ends attempts past their deadline and
those of silent workers. Cleanup recovers jobs of workers that are gone for good.
"""

import msgspec

from windlass.domain.config import health_pause_ms
from windlass.engine.claim.make_room import preempt, review
from windlass.engine.engine import Engine
from windlass.engine.fleet.lost_workers import (
    end_overdue,
    judge_silence,
    note_server_alive,
    recover_orphans,
    refill_limits,
)
from windlass.engine.fleet.probation import judge_conduct
from windlass.engine.fleet.queues import adopt_leases
from windlass.engine.steps import deliver_open


class SchedulingReport(msgspec.Struct, frozen=True):
    """What one round did."""

    steps: int
    limits: int
    promoted: int
    adopted: int = 0  # leases that now count against their queue's limit
    reserved: int = 0  # reservations made or ended
    preempted: int = 0  # jobs told to make room


class SchedulingLoop:
    """Finds what could move but does not."""

    name = "scheduling"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = engine.config.scheduling_interval_ms

    async def run_once(self, now: int) -> SchedulingReport:
        """Runs one round."""
        engine = self._engine
        steps = 0
        # In the task that calls wait for: they would take what another holds for done.
        engine.cascades.start()
        await engine.settled()
        while await engine.run(deliver_open):
            steps += 1
        steps += await engine.steps.end_joins()
        limits = await engine.run(refill_limits)
        promoted = await engine.due_jobs.move()
        adopted = await engine.run(adopt_leases)
        reserved = await engine.run(review)
        preempted = await engine.run(preempt)
        await engine.wake_for_ready_jobs()
        engine.counters.ran(self.name, now)
        return SchedulingReport(steps, limits, promoted, adopted, reserved, preempted)


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


class CleanupReport(msgspec.Struct, frozen=True):
    """What one round did."""

    orphans: int
    promoted: int


class CleanupLoop:
    """Recovers jobs of workers that are gone for good, and queues jobs that are due."""

    name = "cleanup"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = engine.config.cleanup_interval_ms

    async def run_once(self, now: int) -> CleanupReport:
        """Runs one round."""
        orphans = await self._engine.exhaust(recover_orphans)
        promoted = await self._engine.due_jobs.move()
        self._engine.counters.ran(self.name, now)
        return CleanupReport(orphans, promoted)
