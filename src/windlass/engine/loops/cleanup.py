"""The cleanup loop: orphaned jobs, and retries that are due."""

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.fleet.lost_workers import recover_orphans


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
        orphans = 0
        while ended := await self._engine.run(recover_orphans):
            orphans += ended
        promoted = await self._engine.due_jobs.move()
        self._engine.counters.ran(self.name, now)
        return CleanupReport(orphans, promoted)
