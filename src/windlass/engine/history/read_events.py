"""Reads the event log: what is new, what matches a filter, and since when."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, runtime_checkable

import msgspec

from windlass.domain.rows.events import Event
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

CHUNK: Final = 1_000  # events read at once
MAX_SEARCHED: Final = 100_000  # events searched backwards

Select = Callable[[Sequence[Event]], Awaitable[Sequence[Event]]]


@runtime_checkable
class SettledLog(Protocol):
    """A store whose events may become visible out of order, and which knows when they are
    settled.
    """

    async def read_settled(self, after: int, count: int) -> list[Event]: ...


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events to show; fields that are None or empty do not filter."""

    kinds: frozenset[int] = frozenset()
    states: frozenset[int] = frozenset()  # state after a transition
    job: int | None = None
    worker: int | None = None

    def takes(self, event: Event) -> bool:
        """Returns whether the filter shows this event."""
        return (
            (not self.kinds or event.kind in self.kinds)
            and (not self.states or event.to in self.states)
            and self.job in (None, event.job)
            and self.worker in (None, event.worker)
        )


async def read_new(store: Store, after: int, count: int = CHUNK) -> tuple[Sequence[Event], int]:
    """Returns the next events after number `after`, and the number to continue from.

    If a store's events become visible out of order, it reads only settled ones, so that no event
    can appear before one that was already read.
    """
    if isinstance(store, SettledLog):
        events = await store.read_settled(after, count)
    else:
        events = await store.read(lambda tx: tx.log.read(after, count))
    return events, events[-1].seq if events else after


class EventReader:
    """Reads the log for several readers: a store that waits for gaps in it does so for one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = asyncio.Lock()
        self.chunk_turn = asyncio.Lock()  # of all streams: others get theirs between two chunks

    async def read_after(self, after: int, count: int) -> Sequence[Event]:
        """Returns events behind `after`, up to the first gap that may still be filled."""
        async with self._turn:
            events, _ = await read_new(self._store, after, count)
        return events


async def number_before(store: Store, at: int) -> int:
    """Returns the number of the last event before a time."""
    return await store.read(lambda tx: _bisect(tx, at))


async def number_before_last(store: Store, select: Select, last: int, after: int) -> int:
    """Returns the number after which there are `last` events that `select` takes.

    It is never below `after`, and never further back than the newest `MAX_SEARCHED` events: a
    filter that takes few of them would otherwise read the whole log.
    """
    end = await store.read(lambda tx: tx.log.newest())
    after = max(after, end - MAX_SEARCHED)
    left = last
    while end > after:
        begin = max(after, end - CHUNK)
        for event in reversed(await select(await _read_between(store, begin, end))):
            if not left:
                return event.seq
            left -= 1
        end = begin
    return after


async def _read_between(store: Store, after: int, end: int) -> list[Event]:
    events = await store.read(lambda tx: tx.log.read(after, end - after))
    return [event for event in events if event.seq <= end]


async def _bisect(tx: ReadTx, at: int) -> int:
    low, high = 0, await tx.log.newest()
    while low < high:
        middle = (low + high) // 2
        found = await tx.log.read(middle, 1)
        if found and found[0].at < at:
            low = found[0].seq
        else:
            high = middle
    return low
