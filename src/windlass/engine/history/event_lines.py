"""Follows the event log, off the hot path, and writes its events to a sink as lines.

If a store's events become visible out of order, it reads only settled ones, so that no event can
appear before one that was already read.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from windlass.domain.matching.matching import merge_metadata
from windlass.domain.rows.event_lines import WorkerName, render
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import Worker
from windlass.ports.store import Store

CHUNK = 1_000  # events read at once
HOSTNAME = "system:hostname"

Sink = Callable[[str], object]


@runtime_checkable
class SettledLog(Protocol):
    """A store whose events may become visible late, and which knows when they cannot."""

    async def read_settled(self, after: int, count: int) -> list[Event]: ...


class EventLinesReport(msgspec.Struct, frozen=True):
    """What one round wrote to the sink."""

    events: int
    lines: int


async def read_new(store: Store, after: int, count: int = CHUNK) -> tuple[Sequence[Event], int]:
    """Returns the next events after number `after`, and the number to continue from."""
    if isinstance(store, SettledLog):
        events = await store.read_settled(after, count)
    else:
        events = await store.read(lambda tx: tx.log.read(after, count))
    return events, events[-1].seq if events else after


class EventTailer:
    """A loop that writes new events to the sink in each round.

    `sink` is any function of a line, such as the `info` of a structlog logger.
    """

    name = "tail"

    def __init__(self, store: Store, sink: Sink, after: int = 0, interval_ms: int = 1_000) -> None:
        self.interval_ms = interval_ms
        self._store = store
        self._sink = sink
        self._after = after
        self._names: dict[int, WorkerName] = {}

    async def run_once(self, now: int) -> EventLinesReport:
        """Writes all new events."""
        del now
        events = lines = 0
        while True:
            new, self._after = await read_new(self._store, self._after)
            if not new:
                return EventLinesReport(events, lines)
            await self._learn_names(new)
            for event in new:
                for line in render(event, self._names):
                    self._sink(line)
                    lines += 1
            events += len(new)

    async def _learn_names(self, events: Sequence[Event]) -> None:
        """Reads the workers again if one is new or has an event of its own."""
        if any(
            event.kind == EventKind.WORKER or (event.worker and event.worker not in self._names)
            for event in events
        ):
            workers = await self._store.read(lambda tx: tx.workers.all())
            self._names.update({worker.id: _name_of(worker) for worker in workers})


def _name_of(worker: Worker) -> WorkerName:
    metadata = merge_metadata(
        msgspec.json.decode(worker.dynamic), msgspec.json.decode(worker.static)
    )
    return WorkerName(worker.name, str(metadata.get(HOSTNAME) or worker.name))
