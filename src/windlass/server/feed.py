"""Follows the event log, for event streams and for the histograms."""

import asyncio
from collections.abc import Sequence

import msgspec

from windlass.domain.rows.events import Event
from windlass.engine.history.event_lines import read_new
from windlass.ports.store import Store
from windlass.server.metrics import Meters

CHUNK = 1_000


class FeedReport(msgspec.Struct, frozen=True):
    """How many events one round read."""

    events: int


class Feed:
    """A loop that passes new events to the meters."""

    name = "feed"
    interval_ms = 1_000

    def __init__(self, store: Store, meters: Meters) -> None:
        self._store = store
        self._meters = meters
        self._after = -1
        # A store that waits for gaps in the log does so for one reader at a time.
        self._turn = asyncio.Lock()

    async def read_after(self, after: int, count: int) -> Sequence[Event]:
        """Returns events behind `after`, up to the first gap that may still be filled."""
        async with self._turn:
            events, _ = await read_new(self._store, after, count)
        return events

    async def run_once(self, now: int) -> FeedReport:
        """Passes the events since the last round to the meters."""
        del now
        if self._after < 0:
            self._after = await self._store.read(lambda tx: tx.log.newest())
        seen = 0
        while events := await self.read_after(self._after, CHUNK):
            self._meters.observe(events)
            self._after = events[-1].seq
            seen += len(events)
        return FeedReport(seen)
