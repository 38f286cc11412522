"""Follows the event log, for event streams, the counters and the server's log."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from windlass.domain.rows.events import Event
from windlass.engine.history.events import EventLines, EventReader
from windlass.ports.loop_time import give_way
from windlass.server.metrics import Meters
from windlass.server.metrics.counted_events import CountedEvents
from windlass.store.store import Store

CHUNK: Final = 250  # events that are read, counted and logged in one go


class Spans(Protocol):
    """Makes spans of events."""

    def learn(self, job: int, stored: bytes, /) -> None: ...

    async def prepare(self, store: Store, events: Sequence[Event], /) -> None: ...

    def observe(self, events: Sequence[Event], after: int, /) -> None: ...


class FeedReport(msgspec.Struct, frozen=True):
    """How many events one round read."""

    events: int


class Feed(EventReader):
    """A loop that passes new events to the meters and, as `lines`, to the log."""

    name = "feed"
    interval_ms = 1_000

    def __init__(
        self,
        store: Store,
        meters: Meters,
        counted: CountedEvents,
        lines: EventLines | None = None,
        spans: Spans | None = None,
    ) -> None:
        super().__init__(store)
        self._meters = meters
        self._counted = counted
        self._lines = lines
        self._spans = spans
        self._after = -1
        self._logged = -1  # lines of earlier events were written before this server started

    async def begin(self) -> None:
        """Logs what is behind the newest event, and counts what no server has counted."""
        self._logged = await self._store.read(lambda tx: tx.log.newest())
        self._after = await self._counted.begin()

    @property
    def position(self) -> int:
        """The number of the last event that was read."""
        return max(0, self._after)

    async def run_once(self, now: int) -> FeedReport:
        """Passes on the events since the last round."""
        del now
        if self._after < 0:
            await self.begin()
        seen = 0
        while events := await self.read_after(self._after, CHUNK):
            await give_way()
            also = None if self._spans is None else self._spans.learn
            await self._meters.jobs.learn(self._store, events, also)
            if self._spans is not None:
                await self._spans.prepare(self._store, events)
            if self._lines is not None:
                # May fail, and then all of them come again; so nothing is counted before.
                await self._lines.write([event for event in events if event.seq > self._logged])
            counted = await self._counted.claim(events[-1].seq)
            self._meters.jobs.observe(events, counted)
            if self._spans is not None:
                self._spans.observe(events, counted)
            self._after = events[-1].seq
            seen += len(events)
        if self._lines is not None:
            self._lines.end_round()
        return FeedReport(seen)
