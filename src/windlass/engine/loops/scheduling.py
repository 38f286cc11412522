"""The scheduling loop: the safety net behind the event-driven path; and the cleanup loop.

Jobs move without it. It picks up what a crash or a lost notification left behind: intents, room
under limits, due jobs, signals that were not delivered to all, functions whose children have ended,
waiting syncs that were not woken. Cleanup recovers jobs of workers that are gone for good.
"""

import msgspec

from windlass.engine.claim.make_room import preempt, review
from windlass.engine.engine import Engine
from windlass.engine.fleet.lost_workers import recover_orphans, refill_limits
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
