"""Works out where a job's time went, as far as the event log reaches.

The log holds the job's transitions, pauses of its queue, and the workers with their metadata over
time. When its limits were used up follows from their current usage: we walk the log backwards to
the time when the job was queued. If the log has grown too long since, we do not know. For a rate we
count the starts that the store remembers, and those among the last events before the job was
queued.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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
from windlass.domain.job.dependency_graph import ids_in
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    ASSIGNED,
    QUEUED,
    STATE_BY_CODE,
)
from windlass.domain.matching.matching import metadata_of
from windlass.domain.matching.shapes import Shape, can_run, opens_at, read_starts
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import BaselineKind, Event, EventKind
from windlass.domain.rows.records import JobFacts, JobRecord, ShownNumbers
from windlass.domain.values.quantities import format_moment, readable_duration
from windlass.engine.explain.reasons import Sees, visible_job
from windlass.engine.history.statistics import Kinds
from windlass.engine.jobs.dependents import newest_of
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.verify.past import WorkerPast, apply_worker_event, workers_from
from windlass.store.sql.transaction import ReadTx

FLEET_EVENTS: Final = 100_000  # maximum events about workers and queues that we read
FIRST: Final = -(2**62)
HALF_SHOWN: Final = 250  # segments kept at each end
Held = dict[Cause, list[Interval]]
MAX_EVENTS: Final = 100_000
BEFORE: Final = 20_000  # events before the job was queued, which may be starts under its rate
PAGE: Final = 5_000


async def time_spent(tx: ReadTx, catalog: Catalog, job: int, sees: Sees) -> TimeSpent:
    """Returns the time of one job by cause."""
    view, shape = await visible_job(tx, catalog, job, sees)
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
            is_held = move is not None and move.to in ACTIVE_CODES
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
            at = event.details.get("not_before") or 0
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
        named = ids_in(self._spec)
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
            data = event.details
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
            apply_worker_event(past, event, event.details)
            if self._is_able(past):
                able.add(event.worker)
            else:
                able.discard(event.worker)
            changes.append((event.at, not able))
        return while_true(changes, self._until)

    async def _workers_before(self, workers: set[int]) -> dict[int, WorkerPast]:
        """Returns the workers as of the last event that retention removed."""
        ids = sorted({*workers, *(row.id for row in await self._tx.workers.all())})
        return workers_from(await self._tx.retention.baseline(int(BaselineKind.WORKER), ids))

    def _is_able(self, past: WorkerPast) -> bool:
        if past.removed or past.status != WorkerStatus.ONLINE or past.dynamic is None:
            return False
        metadata = metadata_of(past.static or "{}", past.dynamic)
        return can_run(self._shape, metadata) is None

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
    return [(event.at, until) for event in loops if (until := event.details.get("hold_until"))]


class Limits(NamedTuple):
    """The limits of one job: of its key, its queue, and its rate."""

    job: int
    active: bool
    key: int | None
    key_max: int
    shape: Shape

    def any(self, fleet: Iterable[Event]) -> bool:
        """Returns True if the job had any limit."""
        return bool(self.key or self.shape.rate or any(_most_running(self, e) for e in fleet))


async def full_times(
    tx: ReadTx, catalog: Catalog, limits: Limits, first: Event, fleet: Sequence[Event], until: int
) -> list[Interval] | None:
    """Returns when one of these limits had no room, since `first`; None if the log is too long."""
    if not limits.any(fleet):
        return []
    back = BEFORE if limits.shape.rate is not None else 0
    events = await _events_since(tx, max(0, first.seq - back))
    if events is None:
        return None
    facts = await _facts(tx, {event.job for event in events} - {limits.job})
    await catalog.know(tx, {fact.shape for fact in facts.values()})
    past = _Past(tx, catalog, limits, first, events, facts)
    return [
        *while_true(await past.of_key(), until),
        *while_true(await past.of_queue(fleet), until),
        *await past.of_rate(),
    ]


@dataclass(eq=False)
class _Past:
    """The events since a job was queued, as each of its limits sees them."""

    _tx: ReadTx
    _catalog: Catalog
    _limits: Limits
    _first: Event
    _events: Sequence[Event]
    _facts: dict[int, JobFacts]

    async def of_key(self) -> list[tuple[int, bool]]:
        """Returns changes of its concurrency limit; the newest submit set its maximum."""
        limits = self._limits
        row = (await self._tx.limits.read([limits.key])).get(limits.key) if limits.key else None
        if row is None:
            return []
        moves = self._moves(lambda fact: fact.limit == limits.key, self._first.seq)
        asked = await self._asked({event.job for event in moves if not event.source})
        most = [(e.at, asked[e.job]) for e in moves if e.job in asked and not e.source]
        return self._changes(moves, row.leased - limits.active, limits.key_max, most)

    async def of_queue(self, fleet: Iterable[Event]) -> list[tuple[int, bool]]:
        """Returns changes of its queue's limit, which operators set."""
        set_to = [
            (event.at, event.details["max_running"])
            for event in fleet
            if _is_limit_of(event, self._limits.shape.queue)
        ]
        if not set_to:
            return []
        queue, shapes = self._limits.shape.queue, self._catalog.shapes
        running = await self._tx.placement.running()
        await self._catalog.know(self._tx, running)
        now = sum(leases for shape, leases in running.items() if shapes[shape].queue == queue)
        moves = self._moves(lambda fact: shapes[fact.shape].queue == queue, self._first.seq)
        before = [most for at, most in set_to if at <= self._first.at]
        later = [(at, most) for at, most in set_to if at > self._first.at]
        start = before[-1] if before else 0
        return self._changes(moves, now - self._limits.active, start, later)

    async def of_rate(self) -> list[Interval]:
        """Returns when enough jobs with its rate's key had started."""
        shape = self._limits.shape
        rate = shape.rate
        if rate is None:
            return []
        row = await self._tx.views.rate(shape.namespace, rate.key)
        own = self._starts(shape.namespace, rate.key)
        starts = sorted({*own, *([] if row is None else read_starts(row.starts))})
        ends = [opens_at(rate, starts[: n + 1]) for n in range(len(starts))]
        return [(at, end) for at, end in zip(starts, ends, strict=True) if end > at]

    def _starts(self, namespace: str, key: str) -> list[int]:
        shapes = self._catalog.shapes

        def counts(fact: JobFacts) -> bool:
            shape = shapes[fact.shape]
            rate = shape.rate
            return rate is not None and (shape.namespace, rate.key) == (namespace, key)

        return [event.at for event in self._moves(counts, 0) if event.to == ASSIGNED]

    def _moves(self, counts: Callable[[JobFacts], bool], after: int) -> list[Event]:
        """Returns the transitions of other jobs that count against a limit."""
        mine = {job for job, fact in self._facts.items() if counts(fact)}
        return [event for event in self._events if event.seq > after and event.job in mine]

    async def _asked(self, jobs: set[int]) -> dict[int, int]:
        specs = await self._tx.jobs.specs(sorted(jobs))
        asked = {job: decode_spec(body).concurrency for job, body in specs.items()}
        return {job: one.max for job, one in asked.items() if one is not None}

    def _changes(
        self, moves: Sequence[Event], now: int, most: int, set_to: Sequence[tuple[int, int]]
    ) -> list[tuple[int, bool]]:
        """Returns when the limit became used up or free, after moves and new maximums."""
        used = now - sum(map(_change, moves))
        changes = [(self._first.at, 0 < most <= used)]
        steps = [(event.at, _change(event), -1) for event in moves]
        steps += [(at, 0, maximum) for at, maximum in set_to]
        for at, change, maximum in sorted(steps, key=lambda one: one[0]):
            used += change
            most = most if maximum < 0 else maximum
            changes.append((at, 0 < most <= used))
        return changes


async def _events_since(tx: ReadTx, after: int) -> list[Event] | None:
    found: list[Event] = []
    while len(found) <= MAX_EVENTS:
        page = await tx.log.read(found[-1].seq if found else after, PAGE)
        found += page
        if len(page) < PAGE:
            return [event for event in found if event.kind == EventKind.JOB]
    return None


async def _facts(tx: ReadTx, jobs: set[int]) -> dict[int, JobFacts]:
    ordered = sorted(jobs)
    found: dict[int, JobFacts] = {}
    for start in range(0, len(ordered), PAGE):
        found |= await tx.jobs.read(ordered[start : start + PAGE])
    return found


def _most_running(limits: Limits, event: Event) -> int:
    found: int = event.details["max_running"] if _is_limit_of(event, limits.shape.queue) else 0
    return found


def _is_limit_of(event: Event, queue: str) -> bool:
    if event.kind != EventKind.QUEUE:
        return False
    data = event.details
    return data.get("queue") == queue and "max_running" in data


def _change(event: Event) -> int:
    """Returns by how much a transition changes the use of a limit."""
    return (event.to in ACTIVE_CODES) - (event.source in ACTIVE_CODES)
