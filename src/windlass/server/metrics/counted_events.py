"""Decides which server counts an event, so that the counters of all servers add up.

The store keeps up to where events are counted. A server that has read further advances it, and
counts what lies between. On a store of its own a server counts everything it reads.
"""

from typing import Final

from windlass.engine.engine import Engine
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

POSITION: Final = "counted_seq"
MAX_BEHIND: Final = 100_000  # events; a server that starts does not count more of the past


class CountedEvents:
    """The events that this server counts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._shared = engine.store.shared and not engine.store.inline

    async def begin(self) -> int:
        """Returns the number behind which to read: what no server has counted, if that is not old.

        Servers advance the position only past events that they have read, so nothing is left out
        between them.
        """
        if not self._shared:
            return await self._engine.store.read(lambda tx: tx.log.newest())
        return await self._engine.run(_begin)

    async def claim(self, upto: int) -> int:
        """Returns the number behind which this server counts the events up to `upto`."""
        if not self._shared:
            return 0
        return await self._engine.run(lambda work: _claim(work, upto))


async def _begin(work: Work) -> int:
    newest = await work.tx.log.newest()
    position = await _position(work.tx)
    if position is not None and newest - position <= MAX_BEHIND:
        return min(position, newest)
    await work.tx.catalog.advance_meta(POSITION, position or 0, newest)
    return newest


async def _claim(work: Work, upto: int) -> int:
    while True:
        position = await _position(work.tx) or 0
        if position >= upto:
            return upto
        if await work.tx.catalog.advance_meta(POSITION, position, upto):
            return position


async def _position(tx: ReadTx) -> int | None:
    return (await tx.catalog.meta()).get(POSITION)
