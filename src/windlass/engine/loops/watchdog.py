"""The watchdog: finds workflows that do not move although nothing holds them back."""

from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from windlass.domain.rows.records import WorkflowRow
from windlass.domain.values.errors import Conflict
from windlass.engine.engine import Engine
from windlass.engine.workflows.watchdog import Stall, describe, examine, give_up, repair
from windlass.store.sql.transaction import ReadTx

INTERVAL_MS = 30_000

log = structlog.get_logger("windlass.watchdog")


class WatchdogReport(msgspec.Struct, frozen=True):
    """What one round did; `examined` counts workflows unchanged since the last round."""

    unfinished: int
    examined: int
    repaired: int
    canceled: int


class _Sighting(NamedTuple):
    """How a workflow looked in the last round, and when it was examined."""

    look: tuple[object, ...]
    examined_at: int | None


class WatchdogLoop:
    """Repairs contradictions, and cancels workflows in which one came back."""

    name = "watchdog"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = min(INTERVAL_MS, engine.config.stall_timeout_ms)
        self._seen: dict[int, _Sighting] = {}
        self._repaired_at: dict[int, int] = {}  # when a contradiction was first found

    async def run_once(self, now: int) -> WatchdogReport:
        """Runs one round: examines workflows that are unchanged since the last one."""
        rows = await self._unfinished()
        suspects = [row.id for row in rows if self._stands(row, now)]
        open_ids = {row.id for row in rows}
        self._seen = {n: seen for n, seen in self._seen.items() if n in open_ids}
        self._repaired_at = {n: at for n, at in self._repaired_at.items() if n in open_ids}
        repaired = canceled = 0
        for workflow in suspects:
            found = await self._engine.store.read(partial(examine, workflow=workflow))
            self._seen[workflow] = self._seen[workflow]._replace(examined_at=now)
            if found is not None:
                gave_up = await self._act(found, now)
                canceled += gave_up
                repaired += not gave_up
        self._engine.counters.ran(self.name, now)
        return WatchdogReport(len(rows), len(suspects), repaired, canceled)

    async def _unfinished(self) -> list[WorkflowRow]:
        rows: list[WorkflowRow] = []
        count = self._engine.config.chunk_rows
        while page := await self._engine.store.read(partial(_unfinished, rows=rows, count=count)):
            rows += page
        return rows

    def _stands(self, row: WorkflowRow, now: int) -> bool:
        """Returns True if it is unchanged since the last round and was not examined lately."""
        look = row.state, row.run, row.counts
        seen = self._seen.get(row.id)
        if seen is None or seen.look != look:
            self._seen[row.id] = _Sighting(look, None)
            return False
        return seen.examined_at is None or now - seen.examined_at >= self._patience

    @property
    def _patience(self) -> int:
        return self._engine.config.stall_timeout_ms

    async def _act(self, found: Stall, now: int) -> bool:
        """Repairs it, or cancels it if the problem came back; returns True if canceled."""
        first = self._repaired_at.setdefault(found.workflow, now)
        everything = await self._engine.store.read(partial(describe, found=found))
        log.error("workflow_stalled", workflow=found.workflow, what=found.what, **everything)
        came_back = now - first >= self._patience
        try:
            # Canceling only ends jobs that have their rows, so we restore missing rows first.
            await self._engine.run(partial(repair, found=found))
            gave_up = came_back and await self._engine.run(partial(give_up, found=found))
        except Conflict:
            return False  # it moved on meanwhile
        await self._engine.settled()
        return gave_up


async def _unfinished(tx: ReadTx, rows: list[WorkflowRow], count: int) -> list[WorkflowRow]:
    return await tx.workflows.unfinished(rows[-1].id if rows else 0, count)
