"""The retention loop: ended jobs, old events, lost logs and orphaned files."""

from collections.abc import Awaitable
from functools import partial
from typing import Protocol

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.files.tidying import Swept, sweep_files
from windlass.engine.history import retention
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.blobs import Blobs

SWEEP_MS = 3_600_000  # it reads every file's name, so not in each round


class Step(Protocol):
    """One transaction of a walk over many rows."""

    def __call__(self, work: Work, after: int | None) -> Awaitable[retention.Walk]: ...


class RetentionReport(msgspec.Struct, frozen=True):
    """What one round removed; `logs` were marked lost, `joined` have fewer segments now."""

    jobs: int
    events: int
    logs: int
    files: int
    runs: int = 0
    reactions: int = 0
    joined: int = 0
    audit: int = 0
    signals: int = 0


class RetentionLoop:
    """Removes what has expired. Safe to run on every server at once."""

    name = "retention"

    def __init__(self, engine: Engine, blobs: Blobs) -> None:
        self._engine = engine
        self._blobs = blobs
        self._swept_at = -SWEEP_MS
        self.interval_ms = engine.config.retention_interval_ms

    async def run_once(self, now: int) -> RetentionReport:
        """Runs one round of many small transactions."""
        exhaust = self._engine.exhaust
        await exhaust(retention.forget_commits)
        logs = await self._walk(retention.lose_logs)
        jobs = await self._walk(retention.remove_jobs)
        await self._walk(retention.remove_empty_workflows)
        events = await exhaust(retention.trim_events)
        await exhaust(retention.trim_uploads)  # before their files
        swept = await self._sweep(now)
        runs = await exhaust(retention.trim_runs)
        reactions = await exhaust(retention.trim_reactions)
        audit = await exhaust(retention.trim_audit)
        signals = await exhaust(retention.trim_signals)
        await exhaust(retention.trim_aliases)
        await exhaust(retention.trim_series)
        self._engine.counters.ran(self.name, now)
        return RetentionReport(
            jobs, events, logs, swept.removed, runs, reactions, swept.joined, audit, signals
        )

    async def _walk(self, step: Step) -> int:
        done = 0
        after: int | None = None
        while True:
            walk = await self._engine.run(partial(step, after=after))
            done += walk.done
            after = walk.next
            if after is None:
                return done

    async def _sweep(self, now: int) -> Swept:
        if now - self._swept_at < SWEEP_MS:
            return Swept(0, 0)
        self._swept_at = now
        old = now - self._engine.config.blob_retention_ms
        return await sweep_files(self._engine.store, self._blobs, old)
