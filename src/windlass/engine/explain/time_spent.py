"""Works out where a job's time went, as far as the event log reaches.

The log holds the job's transitions, pauses of its queue, and the workers with their metadata over
time. `limits_past.py` works out when limits were used up.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from windlass.domain.explain.waiting_time import (
    CAUSES,
    TEXTS,
    WAITS,
    Cause,
    Interval,
    Part,
    Piece,
    Segment,
    TimeSpent,
    pieces,
    spans_of,
    sums_of,
    while_true,
)
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import BaselineKind, Event, EventKind
from windlass.domain.rows.records import JobRecord, ShownNumbers
from windlass.domain.values.errors import NotFound
from windlass.domain.values.quantities import format_moment, readable_duration
from windlass.engine.explain.limits_past import Limits, full_times
from windlass.engine.history.statistics import Kinds
from windlass.engine.jobs.supersede import newest_of
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.verify.past import WorkerPast, apply_worker_event
from windlass.store.sql.transaction import ReadTx

FLEET_EVENTS: Final = 100_000  # maximum events about workers and queues that we read
FIRST: Final = -(2**62)

QUEUED: Final = State.QUEUED.code
WITH_WORKER: Final = frozenset(
    state.code for state in (State.ASSIGNED, State.RUNNING, State.CANCELING, State.TIMED_OUT)
)
HALF_SHOWN: Final = 250  # segments kept at each end


Held = dict[Cause, list[Interval]]


async def time_spent(
    tx: ReadTx, catalog: Catalog, job: int, sees: Callable[[str], bool]
) -> TimeSpent:
    """Returns the time of one job by cause."""
    view = await tx.views.job(job)
    if view is None:
        raise NotFound("job", job)
    facts = view.facts
    await catalog.know(tx, [facts.shape])
    shape = catalog.shapes[facts.shape]
    if not sees(shape.namespace):
        raise NotFound("job", job)
    return await _TimeAccount(tx, catalog, view, shape).add_up()


class _TimeAccount:
    """Reads the events of one job, and notes what it could not read."""

    def __init__(self, tx: ReadTx, catalog: Catalog, view: JobRecord, shape: Shape) -> None:
        self._tx = tx
        self._catalog = catalog
        self._view = view
        self._shape = shape
        self._spec = decode_spec(view.spec)
        self._until = view.finished_at or tx.now
        self._moves: list[Event] = []
        self._notes: list[str] = []

    async def add_up(self) -> TimeSpent:
        facts = self._view.facts
        self._moves = [e for e in await self._tx.log.of_job(facts.id) if e.kind == EventKind.JOB]
        if not self._moves or self._moves[0].source:
            self._notes.append("the first events of the job have been removed from the log")
        moves = [(event.at, event.to) for event in self._moves]
        spans = spans_of(moves, facts.created_at, self._until)
        found = pieces(spans, await self._held(), await self._needs_end())
        sums = sums_of(found)
        segments = self._segments(found)
        total = sum(sums.values())
        if "running" in sums:
            await self._compare()
        return TimeSpent(
            job=facts.id,
            state=str(STATE_BY_CODE[self._view.state]),
            since=format_moment(facts.created_at),
            until=format_moment(self._until),
            total=total / 1000,
            waited=sum(ms for cause, ms in sums.items() if cause in WAITS) / 1000,
            parts=tuple(
                Part(cause=cause, text=TEXTS[cause], seconds=sums[cause] / 1000)
                for cause in CAUSES
                if cause in sums
            ),
            segments=tuple(segments[:HALF_SHOWN] + segments[HALF_SHOWN:][-HALF_SHOWN:]),
            left_out=max(0, len(segments) - 2 * HALF_SHOWN),
            notes=tuple(self._notes),
        )

    def _segments(self, found: Sequence[Piece]) -> list[Segment]:
        """Returns the pieces as they are shown, with the attempts that they belong to."""
        at = [event.at for event in self._moves]
        numbers = ShownNumbers(self._view.attempts)
        segments: list[Segment] = []
        for start, end, cause in found:
            number = bisect_right(at, start) - 1
            move = self._moves[number] if number >= 0 else None
            is_held = move is not None and move.to in WITH_WORKER
            segments.append(
                Segment(
                    cause=cause, start=format_moment(start), end=format_moment(end),
                    seconds=(end - start) / 1000,
                    attempt=numbers(move.attempt) if move is not None and is_held else None,
                )
            )  # fmt: skip
        return segments

    async def _compare(self) -> None:
        """Adds the usual run time of jobs of its kind, if known."""
        kinds = Kinds(self._tx, self._catalog)
        known = await kinds.of_job(self._view.facts.shape, self._view.spec)
        if known is not None:
            half, most = readable_duration(known.p50_ms), readable_duration(known.p90_ms)
            self._notes.append(
                f"half of the jobs of its kind ({known.kind}) run at most {half}, "
                f"90 % at most {most}"
            )

    async def _held(self) -> Held:
        """Returns when each cause held the job back while it was queued."""
        queued = [event for event in self._moves if event.to == QUEUED]
        if not queued:
            return {}
        held: Held = {"not_before": [], "backoff": []}
        not_before = self._spec.not_before_ms
        if not_before:
            held["not_before"] = [(FIRST, not_before)]
        for event in queued:  # handed back with a reason: it backs off while it is queued
            at = _data(event).get("not_before") or 0
            if at > event.at:
                held["backoff"].append((event.at, at))
        last = max(
            event.seq for event in self._moves if event.source == QUEUED or event.to == QUEUED
        )
        if self._view.state == QUEUED:
            last = await self._tx.log.newest()
        fleet = await self._tx.views.fleet_events(0, last, FLEET_EVENTS)
        if len(fleet) == FLEET_EVENTS:
            self._notes.append("there are too many events about the fleet to read them all")
            held["unknown"] = [(FIRST, self._until)]
            return held
        held["restored"] = _restored(fleet)
        held["paused"] = await self._paused(fleet)
        held["no_worker"] = await self._without_worker(fleet)
        await self._add_limits(held, queued[0], fleet)
        return held

    async def _needs_end(self) -> int | None:
        """Returns when the last job it waited for ended; None while one is open."""
        named = [r for r in (*self._spec.after, *self._spec.after_any) if isinstance(r, int)]
        newest = (await newest_of(self._tx, named)).values() if named else []
        if any(fact.is_open for fact in newest):
            return None
        records = await self._tx.retention.records(sorted({fact.id for fact in newest}))
        ends = [record.finished_at for record in records if record.finished_at is not None]
        return max(ends, default=FIRST)

    # Queues and workers

    async def _paused(self, events: Iterable[Event]) -> list[Interval]:
        head = await self._tx.retention.baseline(int(BaselineKind.HEAD), [0])
        before = json.loads(head[0].body)["paused"] if head else {}
        queue = self._shape.queue
        changes = [(FIRST, bool(before.get(queue)))]
        for event in events:
            data = _data(event)
            if event.kind == EventKind.QUEUE and data.get("queue") == queue and "paused" in data:
                changes.append((event.at, bool(data["paused"])))
        return while_true(changes, self._until)

    async def _without_worker(self, events: Sequence[Event]) -> list[Interval]:
        """Returns when no worker that takes jobs could have run it."""
        about_workers = [event for event in events if event.kind == EventKind.WORKER]
        workers = await self._workers_before({event.worker for event in about_workers})
        able = {worker for worker, past in workers.items() if self._is_able(past)}
        changes = [(FIRST, not able)]
        for event in about_workers:
            past = workers.setdefault(event.worker, WorkerPast())
            apply_worker_event(past, event, _data(event))
            if self._is_able(past):
                able.add(event.worker)
            else:
                able.discard(event.worker)
            changes.append((event.at, not able))
        return while_true(changes, self._until)

    async def _workers_before(self, workers: set[int]) -> dict[int, WorkerPast]:
        """Returns the workers as of the last event that retention removed."""
        ids = sorted({*workers, *(row.id for row in await self._tx.workers.all())})
        found: dict[int, WorkerPast] = {}
        for row in await self._tx.retention.baseline(int(BaselineKind.WORKER), ids):
            past = found[row.id] = WorkerPast()
            for name, value in json.loads(row.body).items():
                setattr(past, name, value)
        return found

    def _is_able(self, past: WorkerPast) -> bool:
        if past.removed or past.status != WorkerStatus.ONLINE or past.dynamic is None:
            return False
        static: dict[str, Any] = json.loads(past.static or "{}")
        return can_run(self._shape, merge_metadata(json.loads(past.dynamic), static)) is None

    # Limits

    async def _add_limits(self, held: Held, first: Event, fleet: Sequence[Event]) -> None:
        """Adds the times when the limits of its key, queue and rate were used up."""
        own = self._spec.concurrency
        facts = self._view.facts
        limits = Limits(
            job=facts.id,
            active=self._view.lease is not None,
            key=facts.limit,
            key_max=0 if own is None else own.max,
            shape=self._shape,
        )
        found = await full_times(self._tx, self._catalog, limits, first, fleet, self._until)
        if found is None:
            self._notes.append("the log has grown too long to tell when its limits were used up")
        held["limits"] = found or []


def _restored(events: Iterable[Event]) -> list[Interval]:
    """Returns when no job was assigned because a backup had been restored."""
    loops = [event for event in events if event.kind == EventKind.LOOP]
    return [(event.at, until) for event in loops if (until := _data(event).get("hold_until"))]


def _data(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.data) if event.data else {}
    return found
