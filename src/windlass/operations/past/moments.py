"""The state at an earlier moment, from the event log.

A moment is the last event that had happened by then. How deep queues were follows from the
figures of the minute before and the events since; a job, from its own events.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.rows.series import STEPS, SeriesKind, read_figures, read_mark, shift
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment, parse_duration_ms, parse_moment
from windlass.engine.history.series import Depths
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.transaction import ReadTx

MAX_EVENTS: Final = 100_000  # that are added up for one answer


Moved = tuple[int, int, int, int]  # shape, from, to, how many jobs


class PastPoint(NamedTuple):
    """A moment, and the number of the last event by then."""

    at: int
    seq: int


async def find_point(tx: ReadTx, as_of: str) -> PastPoint:
    """Finds a moment in the log; raises `InvalidInput` if the log does not reach back so far."""
    at = _moment(as_of, tx.now)
    if at > tx.now:
        raise InvalidInput("as_of", "a time in the past", as_of)
    oldest = await tx.log.read(0, 1)
    trimmed = bool(oldest) and oldest[0].seq > 1
    if trimmed and at < oldest[0].at:
        begins = format_moment(oldest[0].at)
        hint = "older events were deleted: see event_retention_ms"
        raise InvalidInput("as_of", f"not before {begins}, where the log begins", as_of, hint)
    return PastPoint(at, await _last_by(tx, at))


def _moment(text: str, now: int) -> int:
    try:
        return now - parse_duration_ms(text, "as_of")
    except InvalidInput:
        return parse_moment(text, "as_of")


async def _last_by(tx: ReadTx, at: int) -> int:
    """Returns the number of the last event at a time or before."""
    low, high = 0, await tx.log.newest()
    while low < high:
        middle = (low + high) // 2
        found = await tx.log.read(middle, 1)
        if found and found[0].at <= at:
            low = found[0].seq
        else:
            high = middle
    return low


async def depths_at(tx: ReadTx, catalog: Catalog, point: PastPoint) -> Depths:
    """Returns jobs by state of each namespace and queue at a moment.

    Raises `InvalidInput` where that is not known any more.
    """
    for step in STEPS:
        before = point.at
        for _ in range(3):  # Times of events may be a little out of order.
            row = await tx.series.last(SeriesKind.MARK, step, before)
            if row is None:
                break
            mark = read_mark(row)
            if mark.until <= point.at and mark.seq <= point.seq:
                found = await tx.series.between([SeriesKind.WORK], step, row.at, row.at + 1)
                depths = {(r.namespace, r.name): read_figures(r).depth for r in found}
                if await _add(tx, catalog, depths, mark.seq, point.seq, MAX_EVENTS):
                    return depths
                raise _too_much(point)
            before = row.at
    depths = {}
    if await _add(tx, catalog, depths, 0, point.seq, MAX_EVENTS):
        return depths  # the beginning of the log, before the first figures
    raise _too_much(point)


async def _add(
    tx: ReadTx, catalog: Catalog, depths: Depths, after: int, upto: int, most: int
) -> bool:
    """Adds what the events in (after, upto] changed; returns False if they are too many."""
    moved = await tx.series.moved(after, upto, most)
    if moved is None:
        return False
    await add_moves(tx, catalog, depths, moved)
    return True


async def add_moves(tx: ReadTx, catalog: Catalog, depths: Depths, moved: Sequence[Moved]) -> None:
    """Adds jobs that went from state to state, counted by shape."""
    await catalog.know(tx, {shape for shape, *_ in moved})
    for number, source, to, count in moved:
        shape = catalog.shapes[number]
        shift(depths.setdefault((shape.namespace, shape.queue), {}), source, to, count)


def _too_much(point: PastPoint) -> InvalidInput:
    expected = f"a time with at most {MAX_EVENTS} events since the figures before it"
    hint = "per-minute figures are kept for series_detail_ms"
    return InvalidInput("as_of", expected, format_moment(point.at), hint)
