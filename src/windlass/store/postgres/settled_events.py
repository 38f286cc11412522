"""Reads the event log as it grows, without missing events that become visible late.

Numbers are drawn before COMMIT, so an event may appear below one that is already there.
A transaction that draws numbers holds a shared lock until it has ended. So a gap is
passed only when everyone who held that lock after the gap was seen is gone: whatever can
still fill it has filled it by then.
"""

from collections.abc import Awaitable, Callable

from windlass.domain.rows.events import Event

Read = Callable[[int, int], Awaitable[list[Event]]]
Writers = Callable[[], Awaitable[set[str]]]


class SettledEvents:
    """What one reader knows to be settled. Takes one caller at a time."""

    def __init__(self, read: Read, writers: Writers) -> None:
        """`read` reads events in a new snapshot; `writers` returns who holds the lock now."""
        self._read = read
        self._find_writers = writers
        self._settled = 0  # every number up to here is used, or never will be
        self._bound = 0  # the highest number seen when `_writers` was read
        self._writers: set[str] | None = None

    async def read(self, after: int, count: int) -> list[Event]:
        """Returns the events after `after`, up to the first gap that may still be filled."""
        events = await self._read(after, count)
        settled = self._prefix(after, events)
        if len(settled) == len(events) or not await self._gap_is_final(events[-1].seq):
            return settled
        return self._prefix(after, await self._read(after, count))

    def _prefix(self, after: int, events: list[Event]) -> list[Event]:
        """Returns the events before the first gap that may be filled."""
        expected = max(after, self._settled) + 1
        for place, event in enumerate(events):
            if event.seq > expected:
                return events[:place]
            expected = max(expected, event.seq + 1)
        return events

    async def _gap_is_final(self, highest: int) -> bool:
        """Returns True if everybody who could fill the gaps below `highest` has finished."""
        now = await self._find_writers()
        if self._writers is None:
            self._bound, self._writers = highest, now
        else:
            self._writers &= now
        if self._writers:
            return False
        self._settled, self._writers = self._bound, None
        return True
