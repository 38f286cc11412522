"""Follows the event log, for event streams, the counters, the spans and the server's log."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import Event, EventKind, reason_of
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.history.events import EventLines, EventReader, Line
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import give_way
from windlass.server.metrics import Meters
from windlass.server.tracing import JobSpans
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

POSITION: Final = "counted_seq"
MAX_BEHIND: Final = 100_000  # events; a server that starts does not count more of the past

CHUNK: Final = 250  # events that are read, counted and logged in one go

log = structlog.get_logger("windlass.events")


class CountedEvents:
    """Decides which events this server counts, so that the counters of all servers add up.

    The store keeps up to where events are counted. A server that has read further advances it, and
    counts what lies between. On a store of its own a server counts everything it reads.
    """

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


def write_line(line: Line, trace_of: Callable[[int], str | None] | None = None) -> None:
    """Logs one line; only structured formats show the facts, with the job's trace if known."""
    facts = {} if line.event is None else _facts(line.event, line.worker)
    if line.event is not None and trace_of is not None:
        trace = trace_of(line.event.job)
        facts |= {} if trace is None else {"trace_id": trace}
    log.log(int(line.level), line.text, facts=facts)


def _facts(event: Event, worker: str) -> dict[str, Any]:
    facts = {
        "seq": event.seq,
        "at": format_moment(event.at),
        "kind": EventKind(event.kind).name.lower(),
        "job": event.job,
        "attempt": shown_attempt(event.attempt),
        "worker": worker,
        "from": STATE_BY_CODE[event.source],
        "to": STATE_BY_CODE[event.to],
        "reason": _reason(event, worker),
        "actor": event.actor,
    }
    return {name: value for name, value in facts.items() if value}


def _reason(event: Event, worker: str) -> str | None:
    """Returns why it happened; the event log stores no text for what explains itself."""
    to = STATE_BY_CODE[event.to]
    if event.kind != EventKind.JOB or to is None:
        return event.reason
    return reason_of(event, to, worker or str(event.worker))


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
        spans: JobSpans | None = None,
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
