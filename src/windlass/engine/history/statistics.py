"""Collects run times and memory of attempts from the log, in chunks, off the hot path.

The store keeps how far we have read, and a step that advances it excludes all others. So servers
may run this side by side, and each completed job counts once.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from windlass.domain.rows.statistics import (
    Measure,
    StatisticsRow,
    Summary,
    as_histogram,
    as_row,
    gather,
    merge,
    summarise,
)
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.store import ReadTx, WriteTx
from windlass.ports.store.records.statistics import Taken

# By then the event is visible, and the log that says what was used has ended.
SETTLED_MS: Final = 30_000
SHAPES: Final = 1_000  # summaries read at once


async def account(work: Work, events: int) -> int:
    """Accounts for the next events; returns how many there were, 0 if there is nothing to do."""
    statistics = work.tx.statistics
    position = await statistics.position()
    settled = work.now - SETTLED_MS
    upto, taken = await statistics.completed(position, settled, events)
    if upto == position or not await statistics.move_on(position, upto):
        return 0
    if taken:
        await _add(work.tx, taken)
    return upto - position


async def pass_over(work: Work, most: int) -> int:
    """Skips events older than the newest `most`: of so many, a sample is enough."""
    statistics = work.tx.statistics
    position = await statistics.position()
    target = await work.tx.log.newest() - most
    if target <= position or not await statistics.move_on(position, target):
        return 0
    return target - position


async def summaries(tx: ReadTx, shapes: Sequence[int]) -> dict[int, Summary]:
    """Returns what we know about these shapes; those without a completed job are absent."""
    found: dict[int, Summary] = {}
    for start in range(0, len(shapes), SHAPES):
        found |= summarise(await tx.statistics.of_shapes(shapes[start : start + SHAPES]))
    return found


async def _add(tx: WriteTx, taken: Iterable[Taken]) -> None:
    values: dict[tuple[int, Measure], list[int]] = {}
    for shape, run_ms, peak_memory in taken:
        values.setdefault((shape, Measure.RUN_MS), []).append(run_ms)
        if peak_memory:
            values.setdefault((shape, Measure.PEAK_MEMORY), []).append(peak_memory)
    shapes = sorted({shape for shape, _ in values})
    known = {(row.shape, row.measure): row for row in await tx.statistics.of_shapes(shapes)}
    rows: list[StatisticsRow] = []
    for (shape, measure), new in sorted(values.items()):
        old = known.get((shape, int(measure)))
        found = gather(new)
        rows.append(as_row(shape, measure, merge(as_histogram(old), found) if old else found))
    await tx.statistics.put(rows)
