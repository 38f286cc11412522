"""Reads the event log: what is new, what matches a filter, and since when; writes it as lines.

Events become lines off the hot path: a loop reads them after their commit. A burst must not cost
more than the work it reports: a round writes a limited number of informational lines and sums up
the rest.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.matching import metadata_of
from windlass.domain.rows.events import Event, EventKind, Level, WorkerName, level_of, render
from windlass.domain.rows.records import Worker
from windlass.domain.values.quantities import counted
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

CHUNK: Final = 1_000  # events read at once
MAX_SEARCHED: Final = 100_000  # events searched backwards
Select = Callable[[Sequence[Event]], Awaitable[Sequence[Event]]]
HOSTNAME: Final = "system:hostname"
MAX_LINES: Final = 200  # of one level in one round, unless everything is wanted


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
    return await store.read(lambda tx: last_before(tx, at))


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


async def last_before(tx: ReadTx, at: int) -> int:
    """Does the same within a read."""
    low, high = 0, await tx.log.newest()
    while low < high:
        middle = (low + high) // 2
        found = await tx.log.read(middle, 1)
        if found and found[0].at < at:
            low = found[0].seq
        else:
            high = middle
    return low


class Line(NamedTuple):
    """One line for the log. `event` is None for a summary of many."""

    level: Level
    text: str
    event: Event | None
    worker: str  # its name, or empty


Sink = Callable[[Line], object]


class WorkerNames:
    """The names of the workers in events; a removed worker keeps its name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.known: dict[int, WorkerName] = {}

    async def learn(self, events: Sequence[Event]) -> None:
        """Reads the workers that are new or have an event of their own."""
        asked = {
            event.worker
            for event in events
            if event.worker and (event.kind == EventKind.WORKER or event.worker not in self.known)
        }
        if asked:
            found, names = await self._store.read(partial(_read_workers, asked=sorted(asked)))
            self.known.update({worker: WorkerName(name, name) for worker, name in names.items()})
            self.known.update({worker.id: _name_of(worker) for worker in found.values()})

    def name_of(self, worker: int) -> str:
        """Returns a worker's name; empty for none."""
        if not worker:
            return ""
        known = self.known.get(worker)
        return str(worker) if known is None else known.name


async def _read_workers(
    tx: ReadTx, asked: Sequence[int]
) -> tuple[Mapping[int, Worker], Mapping[int, str]]:
    """Returns the workers that exist, and the names of removed ones."""
    found = await tx.workers.read(asked)
    return found, await tx.views.worker_names([number for number in asked if number not in found])


class EventLines:
    """Writes the events from a minimum level on to the sink."""

    def __init__(self, names: WorkerNames, sink: Sink, level: Level = Level.DEBUG) -> None:
        self._names = names
        self._sink = sink
        self._level = level
        self._most = None if level == Level.DEBUG else MAX_LINES
        self._written = [0] * len(Level)  # in this round, by level; an enum is slow as a key
        self._left_out: Counter[tuple[int, int, int]] = Counter()  # by kind and states

    async def write(self, events: Sequence[Event]) -> None:
        """Writes these events, or counts those beyond the limit of a round."""
        shown = [event for event in events if self._has_room(event)]
        await self._names.learn(shown)
        for event in shown:
            worker = self._names.name_of(event.worker)
            for text in render(event, self._names.known):
                self._sink(Line(level_of(event), text, event, worker))

    def end_round(self) -> None:
        """Sums up what was left out, and starts a new round."""
        if self._left_out:
            found = self._left_out.most_common()
            parts = ", ".join(f"{count} × {_kind_of(*what)}" for what, count in found)
            text = f"[FSM] {counted(self._left_out.total(), 'more event')}: {parts}"
            self._sink(Line(Level.INFO, text, None, ""))
            self._left_out.clear()
        self._written = [0] * len(Level)

    def _has_room(self, event: Event) -> bool:
        level = level_of(event)
        if level < self._level:
            return False
        place = level // 10 - 1
        self._written[place] += 1
        if self._most is None or self._written[place] <= self._most:
            return True
        self._left_out[event.kind, event.source, event.to] += 1
        return False


def _kind_of(kind: int, source: int, to: int) -> str:
    after, before = STATE_BY_CODE[to], STATE_BY_CODE[source]
    if kind != EventKind.JOB or after is None:
        return EventKind(kind).name.lower()
    return f"{'NEW' if before is None else before.upper()} → {after.upper()}"


def _name_of(worker: Worker) -> WorkerName:
    metadata = metadata_of(worker.static, worker.dynamic)
    return WorkerName(worker.name, str(metadata.get(HOSTNAME) or worker.name))
