"""Records by the minute what pools had and wanted, so that pages can show it over time.

Each round overwrites one row per pool and slot length, so the rows grow with time and pools, not
with rounds; retention removes old ones.
"""

from collections.abc import Sequence
from typing import Final

from windlass.domain.pools.sizing import Fleet, PoolNow, Verdict
from windlass.domain.rows.series import (
    STEPS,
    PlanFigures,
    SeriesKey,
    SeriesKind,
    as_series,
    read_plan,
    slot_of,
)
from windlass.engine.transaction.unit_of_work import Work

MAX_REASON: Final = 300  # characters


async def note_plans(work: Work, fleet: Fleet, verdicts: Sequence[Verdict]) -> None:
    """Adds this round to the series of every pool."""
    series, rows = work.tx.series, []
    pools = {now.pool.name: now for now in fleet.pools}
    found = {verdict.pool: _figures(pools[verdict.pool], verdict) for verdict in verdicts}
    for step in STEPS:
        at = slot_of(work.now, step)
        known = await series.between([SeriesKind.PLAN], step, at, at + 1)
        earlier = {row.name: read_plan(row) for row in known}
        for name, figures in found.items():
            before = earlier.get(name)
            key = SeriesKey(SeriesKind.PLAN, step, at, "", name)
            rows.append(as_series(key, figures if before is None else figures.after(before)))
    await series.put(sorted(rows))


def _figures(now: PoolNow, verdict: Verdict) -> PlanFigures:
    pool = now.pool
    return PlanFigures(
        wanted=verdict.size,
        machines=now.serving + now.leaving + verdict.start,
        ready=now.serving - now.starting,
        most=pool.max_workers,
        latency_ms=verdict.latency_ms,
        target_ms=verdict.target_ms,
        used_ms=now.used_ms,
        used_micros=now.used_micros,
        budget_ms=pool.max_ms_per_month,
        reason=verdict.reason[:MAX_REASON],
    )
