"""Follows the event log, for event streams, the histograms and the server's log."""

import asyncio
from collections.abc import Sequence

import msgspec

from windlass.domain.rows.events import Event
from windlass.engine.history.event_lines import EventLines
from windlass.engine.history.read_events import CHUNK, read_new
from windlass.ports.store import Store
from windlass.server.metrics import Meters


class FeedReport(msgspec.Struct, frozen=True):
    """How many events one round read."""

    events: int


class Feed:
    """A loop that passes new events to the meters and, as `lines`, to the log."""

    name = "feed"
    interval_ms = 1_000

    def __init__(self, store: Store, meters: Meters, lines: EventLines | None = None) -> None:
        self._store = store
        self._meters = meters
        self._lines = lines
        self._after = -1
        # A store that waits for gaps in the log does so for one reader at a time.
        self._turn = asyncio.Lock()

    async def read_after(self, after: int, count: int) -> Sequence[Event]:
        """Returns events behind `after`, up to the first gap that may still be filled."""
        async with self._turn:
            events, _ = await read_new(self._store, after, count)
        return events

    async def begin(self) -> None:
        """Starts behind the newest event of the log."""
        self._after = await self._store.read(lambda tx: tx.log.newest())

    async def run_once(self, now: int) -> FeedReport:
        """Passes on the events since the last round."""
        del now
        if self._after < 0:
            await self.begin()
        seen = 0
        while events := await self.read_after(self._after, CHUNK):
            if self._lines is not None:
                await self._lines.write(events)  # may fail, and then all of them come again
            self._meters.observe(events)
            self._after = events[-1].seq
            seen += len(events)
        if self._lines is not None:
            self._lines.end_round()
        return FeedReport(seen)
