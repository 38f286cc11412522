"""Writes events to a log as lines, off the hot path: a loop reads them after their commit.

A burst must not cost more than the work it reports: of what is merely informative, a round writes
a limited number of lines and sums up the rest.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.rows.event_levels import Level, level_of
from windlass.domain.rows.event_lines import WorkerName, render
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import Worker
from windlass.ports.store import Store

HOSTNAME: Final = "system:hostname"
MOST_LINES: Final = 200  # of one level in one round, unless everything is wanted


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
            found = await self._store.read(lambda tx: tx.workers.read(sorted(asked)))
            self.known.update({worker.id: _name_of(worker) for worker in found.values()})

    def name_of(self, worker: int) -> str:
        """Returns a worker's name; empty for none."""
        if not worker:
            return ""
        known = self.known.get(worker)
        return str(worker) if known is None else known.name


class EventLines:
    """Writes the events of at least one level to the sink."""

    def __init__(self, names: WorkerNames, sink: Sink, level: Level = Level.DEBUG) -> None:
        self._names = names
        self._sink = sink
        self._level = level
        self._most = None if level == Level.DEBUG else MOST_LINES
        self._written: Counter[Level] = Counter()
        self._left_out: Counter[str] = Counter()

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
            parts = ", ".join(f"{count} × {what}" for what, count in self._left_out.most_common())
            text = f"[FSM] {self._left_out.total()} more events: {parts}"
            self._sink(Line(Level.INFO, text, None, ""))
            self._left_out.clear()
        self._written.clear()

    def _has_room(self, event: Event) -> bool:
        level = level_of(event)
        if level < self._level:
            return False
        self._written[level] += 1
        if self._most is None or self._written[level] <= self._most:
            return True
        self._left_out[_kind_of(event)] += 1
        return False


def _kind_of(event: Event) -> str:
    to = STATE_BY_CODE[event.to]
    if event.kind != EventKind.JOB or to is None:
        return EventKind(event.kind).name.lower()
    frm = STATE_BY_CODE[event.frm]
    return f"{'NEW' if frm is None else frm.upper()} → {to.upper()}"


def _name_of(worker: Worker) -> WorkerName:
    metadata = merge_metadata(
        msgspec.json.decode(worker.dynamic), msgspec.json.decode(worker.static)
    )
    return WorkerName(worker.name, str(metadata.get(HOSTNAME) or worker.name))
