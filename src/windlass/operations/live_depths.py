"""How deep queues are now: what is counted already, and the events since.

The newest events are counted again for every answer until the figures hold them, half a minute
later. So answers share what they counted for a moment, and add what came after it. On PostgreSQL an
event may become visible after one with a higher number: it is missing for that moment at most.
"""

from typing import Final, NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.series import Mark
from windlass.engine.history.series import Depths
from windlass.engine.transaction.catalog import Catalog
from windlass.operations.past import Moved, add_moves
from windlass.store.sql.transaction import ReadTx

RUNNING: Final = (State.ASSIGNED, State.RUNNING, State.CANCELING, State.TIMED_OUT)
MAX_NEW: Final = 20_000  # events that are added to what is counted already
SHARED_MS: Final = 1_000  # how long answers share what they counted


class _Tail(NamedTuple):
    """What the events in (after, upto] moved, as it was first counted at a time."""

    after: int
    upto: int
    counted_at: int
    moved: tuple[Moved, ...]


class LiveDepths:
    """Counts for all answers of one server."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tail: _Tail | None = None

    async def read(self, tx: ReadTx, counted: Mark | None, totals: Depths) -> Depths:
        """Returns jobs by state of each namespace and queue, now unless too much has happened.

        `counted` is how far events are added up already, to `totals`.
        """
        after = 0 if counted is None else counted.seq
        depths: Depths = {} if counted is None else {pair: {**totals[pair]} for pair in totals}
        upto = await tx.log.newest()
        if upto - after <= MAX_NEW:
            await add_moves(tx, self._catalog, depths, await self._moved(tx, after, upto))
        return depths

    async def _moved(self, tx: ReadTx, after: int, upto: int) -> tuple[Moved, ...]:
        known = self._tail
        fresh = (
            known is not None
            and known.after == after
            and known.upto <= upto
            and 0 <= tx.now - known.counted_at < SHARED_MS
        )
        start = known if known is not None and fresh else _Tail(after, after, tx.now, ())
        more = () if start.upto == upto else await tx.series.moved(start.upto, upto, MAX_NEW)
        tail = start._replace(upto=upto, moved=(*start.moved, *(more or ())))
        self._tail = tail
        return tail.moved
