"""Collects run times and memory by kind of work from the log, in chunks, off the hot path.

The store keeps how far we have read, and a step that advances it excludes all others. So servers
may run this side by side, and each completed job counts once.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from windlass.domain.job.kinds import kinds_of
from windlass.domain.rows.statistics import (
    Measure,
    StatisticsRow,
    Summary,
    WorkKind,
    as_histogram,
    as_row,
    fade,
    gather,
    merge,
    summarise,
)
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.statistics import Taken
from windlass.store.sql.transaction import ReadTx

# By then nearly all events are visible, and the logs that report the usage have ended. Later ones
# are not counted: pools and forecasts need the first run times of new work soon.
SETTLED_MS: Final = 5_000
AT_ONCE: Final = 1_000  # kinds read at once
FORGOTTEN_MS: Final = 60 * 86_400_000  # kinds not seen for this long are removed
MAX_ROWS: Final = 20_000  # limit for all kinds; those seen longest ago go first

Described = tuple[int, bytes]  # a job's shape and stored spec


async def account(work: Work, events: int) -> int:
    """Accounts for the next events; returns how many there were, 0 if there is nothing to do."""
    statistics = work.tx.statistics
    position = await statistics.position()
    settled = work.now - SETTLED_MS
    upto, taken = await statistics.completed(position, settled, events)
    if upto == position or not await statistics.move_on(position, upto):
        return 0
    if taken:
        await _add(work, taken)
    return upto - position


async def pass_over(work: Work, most: int) -> int:
    """Skips events older than the newest `most`: a sample is enough."""
    statistics = work.tx.statistics
    position = await statistics.position()
    target = await work.tx.log.newest() - most
    if target <= position or not await statistics.move_on(position, target):
        return 0
    return target - position


class Kinds:
    """Estimates for kinds of work, read once per snapshot for all that ask."""

    def __init__(self, tx: ReadTx, catalog: Catalog) -> None:
        self._tx = tx
        self._catalog = catalog
        self._known: dict[WorkKind, Summary | None] = {}

    async def learn(self, jobs: Iterable[Described]) -> None:
        """Reads the estimates for the kinds of these jobs."""
        pairs = list(jobs)
        await self._catalog.know(self._tx, {shape for shape, _ in pairs})
        found = {kind for shape, spec in pairs for kind in self._kinds(shape, spec)}
        new = sorted(found - self._known.keys())
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            self._known |= dict.fromkeys(part)
            self._known |= summarise(await self._tx.statistics.of_kinds(part))

    def of(self, shape: int, spec: bytes) -> Summary | None:
        """Returns the estimate of a job's narrowest kind that has a past."""
        known = (self._known.get(kind) for kind in self._kinds(shape, spec))
        return next((summary for summary in known if summary is not None), None)

    async def of_job(self, shape: int, spec: bytes) -> Summary | None:
        """Reads and returns the estimate for the kind of one job."""
        await self.learn([(shape, spec)])
        return self.of(shape, spec)

    def _kinds(self, shape: int, spec: bytes) -> list[WorkKind]:
        needs = self._catalog.shapes[shape]
        return [WorkKind(needs.namespace, needs.queue, name) for name in kinds_of(spec)]


async def _add(work: Work, taken: Sequence[Taken]) -> None:
    await work.catalog.know(work.tx, {one.shape for one in taken})
    values: dict[tuple[WorkKind, Measure], list[int]] = {}
    for shape, run_ms, peak_memory, spec in taken:
        needs = work.catalog.shapes[shape]
        for name in kinds_of(spec):
            kind = WorkKind(needs.namespace, needs.queue, name)
            values.setdefault((kind, Measure.RUN_MS), []).append(run_ms)
            if peak_memory:
                values.setdefault((kind, Measure.PEAK_MEMORY), []).append(peak_memory)
    kinds = sorted({kind for kind, _ in values})
    rows = await work.tx.statistics.of_kinds(kinds)
    known = {(row.of, Measure(row.measure)): row for row in rows}
    written: list[StatisticsRow] = []
    for (kind, measure), new in sorted(values.items()):
        found, old = gather(new), known.get((kind, measure))
        if old is not None:
            found = merge(fade(as_histogram(old), work.now - old.updated_at), found)
        written.append(as_row(kind, measure, found, work.now))
    await work.tx.statistics.put(written)


async def forget(work: Work) -> int:
    """Removes statistics of work that has not been seen for long; returns how many rows."""
    return await work.tx.statistics.forget(work.now - FORGOTTEN_MS, MAX_ROWS)
