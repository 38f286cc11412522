"""Adds up the log into counts over time, in chunks, off the hot path.

The store keeps how far we have read, and a step that advances it excludes all others, so servers
may run this side by side and each event counts once. The store also keeps how many jobs of each
queue are in which state: at the end of a minute this is the queue's depth. So a sample never has to
read the jobs.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.records import JobFacts
from windlass.domain.rows.series import (
    MINUTE,
    STEPS,
    Figures,
    Mark,
    Move,
    SeriesKey,
    SeriesKind,
    SeriesRow,
    as_series,
    read_counts,
    read_figures,
    read_mark,
    shift,
    slot_of,
)
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

SETTLED_MS: Final = 30_000  # by then all events are visible, and each is counted
# maximum slots that one step writes; the first ones of a longer gap stay empty
MAX_MINUTES: Final = 240
CURRENT: Final = SeriesKey(SeriesKind.MARK, 0, 0, "", "")  # how far minutes are written

Pair = tuple[str, str]  # namespace and queue
Depths = dict[Pair, dict[int, int]]


class Counted(NamedTuple):
    """How many events a step counted, and whether there was more to do."""

    events: int
    more: bool


async def account(work: Work, events: int) -> Counted:
    """Counts the next events, and writes the minutes that have passed."""
    series = work.tx.series
    position = await series.position()
    if not await series.move_on(position, position):
        return Counted(0, False)
    settled = work.now - SETTLED_MS
    upto, moves = await series.moves(position, settled, events)
    await work.catalog.know(work.tx, {move.shape for move in moves if move.shape is not None})
    known, totals = await read_counted(work.tx)
    first = moves[0].at if moves else settled
    tally = _Tally(work, totals, known or Mark(0, slot_of(first, MINUTE)))
    for move in moves:
        if not tally.advance(slot_of(move.at, MINUTE)):
            upto = move.seq - 1
            break
        tally.count(move)
    else:
        caught_up = upto - position < events
        tally.seq = upto
        if caught_up:
            tally.advance(slot_of(settled, MINUTE))
    await series.move_on(position, upto)
    await tally.write()
    return Counted(upto - position, upto - position >= events or tally.is_full)


async def note_shapes(work: Work, jobs: Mapping[int, JobFacts]) -> None:
    """Keeps what the series still need to know about deleted jobs."""
    kind = int(SeriesKind.GONE)
    rows = [SeriesRow(kind, 0, job, "", str(fact.shape), "") for job, fact in jobs.items()]
    await work.tx.series.put(rows)


async def read_counted(tx: ReadTx) -> tuple[Mark | None, Depths]:
    """Returns how far minutes are written (None: none yet), and jobs by state up to there.

    The jobs are per namespace and queue, as far as events are counted.
    """
    rows = await tx.series.between((SeriesKind.MARK, SeriesKind.TOTAL), 0, 0, 1)
    marks = [read_mark(row) for row in rows if row.kind == SeriesKind.MARK]
    totals = {
        (row.namespace, row.name): read_counts(row) for row in rows if row.kind == SeriesKind.TOTAL
    }
    return marks[0] if marks else None, totals


class _Tally:
    """What one step adds to the series."""

    def __init__(self, work: Work, totals: Depths, current: Mark) -> None:
        self._work = work
        self._totals = totals
        self._slot = current.until  # the minute that has not ended yet
        self._minutes = 0
        self._figures: dict[SeriesKey, Figures] = {}
        self._samples: dict[SeriesKey, dict[int, int]] = {}
        self._marks: dict[SeriesKey, Mark] = {}
        self._sampled = {pair for pair, depth in totals.items() if any(depth.values())}
        self.seq = current.seq
        self.is_full = False

    def advance(self, slot: int) -> bool:
        """Writes the minutes before a slot; returns False if this step has written enough."""
        if slot - self._slot > MAX_MINUTES * MINUTE:
            self._slot = slot - MAX_MINUTES * MINUTE
        while self._slot < slot:
            if self._minutes >= 2 * MAX_MINUTES:
                self.is_full = True
                return False
            self._close(self._slot)
            self._slot += MINUTE
            self._minutes += 1
        return True

    def count(self, move: Move) -> None:
        """Counts one transition."""
        self.seq = move.seq
        if move.shape is None:
            return
        shape = self._work.catalog.shapes[move.shape]
        pair = shape.namespace, shape.queue
        shift(self._totals.setdefault(pair, {}), move.source, move.to)
        for step in STEPS:
            self._at(SeriesKey(SeriesKind.WORK, step, slot_of(move.at, step), *pair)).count(move)

    def _close(self, minute: int) -> None:
        """Records the depth of queues at the end of a minute."""
        open_now = {pair for pair, depth in self._totals.items() if any(depth.values())}
        for pair in open_now | self._sampled:
            for step in STEPS:
                key = SeriesKey(SeriesKind.WORK, step, slot_of(minute, step), *pair)
                self._at(key).sample(self._totals[pair])
                self._samples[key] = self._figures[key].depth
        self._sampled = open_now
        for step in STEPS:
            key = SeriesKey(SeriesKind.MARK, step, slot_of(minute, step), "", "")
            self._marks[key] = Mark(self.seq, minute + MINUTE)

    def _at(self, key: SeriesKey) -> Figures:
        found = self._figures.get(key)
        if found is None:
            found = self._figures[key] = Figures()
        return found

    async def write(self) -> None:
        """Adds everything to the stored values."""
        series = self._work.tx.series
        for step in STEPS:
            mine = [key for key in self._figures if key.step == step]
            if not mine:
                continue
            start, end = min(key.at for key in mine), max(key.at for key in mine) + 1
            for row in await series.between([SeriesKind.WORK], step, start, end):
                added = self._figures.get(SeriesKey(*row[:5]))
                if added is not None:
                    self._add(SeriesKey(*row[:5]), read_figures(row), added)
        rows = [as_series(key, body) for key, body in self._figures.items()]
        rows += [as_series(key, mark) for key, mark in self._marks.items()]
        rows += [
            as_series(SeriesKey(SeriesKind.TOTAL, 0, 0, *pair), depth)
            for pair, depth in self._totals.items()
        ]
        rows.append(as_series(CURRENT, Mark(self.seq, self._slot)))
        await series.put(sorted(rows))
        if self._marks:
            await self._sample_fleet(self._slot - MINUTE)

    def _add(self, key: SeriesKey, known: Figures, added: Figures) -> None:
        """Adds to the stored slot; the depth is replaced by the newer one."""
        depth = added.depth if key in self._samples else known.depth
        high = max(known.high, added.high)
        known.merge(added)
        known.depth, known.high = depth, high
        self._figures[key] = known

    async def _sample_fleet(self, minute: int) -> None:
        """Records how many workers there are, at the end of the last minute."""
        series = self._work.tx.series
        rows: list[SeriesRow] = []
        workers = await series.workers_by_status()
        for step in STEPS:
            at = slot_of(minute, step)
            for status in WorkerStatus:
                key = SeriesKey(SeriesKind.WORKERS, step, at, "", status.name.lower())
                rows.append(as_series(key, {0: workers.get(int(status), 0)}))
        pools: dict[str, dict[int, int]] = {}
        for name, state, count in await series.pool_workers_by_state():
            pools.setdefault(name, {})[state] = count
        for name, states in pools.items():
            for step in STEPS:
                key = SeriesKey(SeriesKind.POOL, step, slot_of(minute, step), "", name)
                rows.append(as_series(key, states))
        await series.put(sorted(rows))
