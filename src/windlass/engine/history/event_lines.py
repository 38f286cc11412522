"""Writes events to a log as lines, off the hot path: a loop reads them after their commit.

A burst must not cost more than the work it reports: a round writes a limited number of
informational lines and sums up the rest.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.rows.event_lines import WorkerName, render
from windlass.domain.rows.events import Event, EventKind, Level, level_of
from windlass.domain.rows.records import Worker
from windlass.domain.values.quantities import counted
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

HOSTNAME: Final = "system:hostname"
MAX_LINES: Final = 200  # of one level in one round, unless everything is wanted


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
            found, names = await self._store.read(partial(_read, asked=sorted(asked)))
            self.known.update({worker: WorkerName(name, name) for worker, name in names.items()})
            self.known.update({worker.id: _name_of(worker) for worker in found.values()})

    def name_of(self, worker: int) -> str:
        """Returns a worker's name; empty for none."""
        if not worker:
            return ""
        known = self.known.get(worker)
        return str(worker) if known is None else known.name


async def _read(tx: ReadTx, asked: Sequence[int]) -> tuple[Mapping[int, Worker], Mapping[int, str]]:
    """Returns the workers that exist, and the names of those that were removed."""
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
    metadata = merge_metadata(
        msgspec.json.decode(worker.dynamic), msgspec.json.decode(worker.static)
    )
    return WorkerName(worker.name, str(metadata.get(HOSTNAME) or worker.name))
