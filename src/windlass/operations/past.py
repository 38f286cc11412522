"""The past, for `as_of=`: a moment is the last event by then; what happened later is taken back.

How deep queues were follows from the figures of the minute before and the events since. A job is
its row of today with everything taken back that happened later; workers follow from the events
about them. This module reads the event log and never changes anything.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from windlass.domain.access.rights import Identity, sees
from windlass.domain.job.job import QUARANTINED, decode_spec
from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    ASSIGNED,
    RUNNING,
)
from windlass.domain.rows.events import BaselineKind, Event, EventKind
from windlass.domain.rows.records import JobRecord, Lease, Worker
from windlass.domain.rows.series import (
    HOUR,
    MINUTE,
    STEPS,
    TEN_MINUTES,
    SeriesKind,
    read_figures,
    read_mark,
    shift,
    slot_of,
)
from windlass.domain.rows.views import JobFilter, JobPage, JobSort, Place, WorkerView
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.ids import AttemptNo, JobId, LeaseNo, WorkerId
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.explain.forecast import Outlook
from windlass.engine.history.events import last_before
from windlass.engine.history.series import Depths
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.verify.past import (
    JobPast,
    WorkerPast,
    apply_move,
    apply_worker_event,
    workers_from,
)
from windlass.messages.jobs import Job, JobList
from windlass.messages.workers import WorkerInfo
from windlass.operations.dependencies import NO_DEPENDENCIES
from windlass.operations.parse import format_place, moment_since
from windlass.operations.render import show_job, show_transitions, show_worker
from windlass.store.job_filters import fitting, states_of, text_of
from windlass.store.sql.transaction import ReadTx

MAX_EVENTS: Final = 100_000  # that are added up for one answer


Moved = tuple[int, int, int, int]  # shape, from, to, how many jobs


class PastPoint(NamedTuple):
    """A moment, and the number of the last event by then."""

    at: int
    seq: int


async def find_point(tx: ReadTx, as_of: str) -> PastPoint:
    """Finds a moment in the log; raises `InvalidInput` if the log does not reach back so far."""
    at = moment_since(as_of, tx.now, "as_of")
    if at > tx.now:
        raise InvalidInput("as_of", "a time in the past", as_of)
    oldest = await tx.log.read(0, 1)
    trimmed = bool(oldest) and oldest[0].seq > 1
    if trimmed and at < oldest[0].at:
        begins = format_moment(oldest[0].at)
        hint = "older events were deleted: see event_retention_ms"
        raise InvalidInput("as_of", f"not before {begins}, where the log begins", as_of, hint)
    return PastPoint(at, await last_before(tx, at + 1))


async def depths_at(tx: ReadTx, catalog: Catalog, point: PastPoint) -> Depths:
    """Returns jobs by state of each namespace and queue at a moment.

    Raises `InvalidInput` where that is not known any more.
    """
    for step in STEPS:
        before = point.at
        for _ in range(3):  # Times of events may be a little out of order.
            row = await tx.series.last(SeriesKind.MARK, step, before)
            if row is None:
                break
            mark = read_mark(row)
            if mark.until <= point.at and mark.seq <= point.seq:
                found = await tx.series.between([SeriesKind.WORK], step, row.at, row.at + 1)
                depths = {(r.namespace, r.name): read_figures(r).depth for r in found}
                if await _add(tx, catalog, depths, mark.seq, point.seq, MAX_EVENTS):
                    return depths
                raise _too_much(point)
            before = row.at
    depths = {}
    if await _add(tx, catalog, depths, 0, point.seq, MAX_EVENTS):
        return depths  # the beginning of the log, before the first figures
    raise _too_much(point)


async def _add(
    tx: ReadTx, catalog: Catalog, depths: Depths, after: int, upto: int, most: int
) -> bool:
    """Adds what the events in (after, upto] changed; returns False if they are too many."""
    moved = await tx.series.moved(after, upto, most)
    if moved is None:
        return False
    await add_moves(tx, catalog, depths, moved)
    return True


async def add_moves(tx: ReadTx, catalog: Catalog, depths: Depths, moved: Sequence[Moved]) -> None:
    """Adds jobs that went from state to state, counted by shape."""
    await catalog.know(tx, {shape for shape, *_ in moved})
    for number, source, to, count in moved:
        shape = catalog.shapes[number]
        shift(depths.setdefault((shape.namespace, shape.queue), {}), source, to, count)


def _too_much(point: PastPoint) -> InvalidInput:
    expected = f"a time with at most {MAX_EVENTS} events since the figures before it"
    hint = "per-minute figures are kept for series_detail_ms"
    return InvalidInput("as_of", expected, format_moment(point.at), hint)


MAX_SLOTS: Final = 1_000
MAX_ROWS: Final = 30_000  # that one answer may read


class Span(NamedTuple):
    """Slots of one length: the start of the first, and the end of the last."""

    start: int
    end: int
    step: int

    @property
    def slots(self) -> list[int]:
        return list(range(self.start, self.end, self.step))


def span_of(start: int, end: int, now: int, detail_ms: int, each: int) -> Span:
    """Returns slots that are kept and few enough, where every slot has about `each` rows.

    Minutes are kept for `detail_ms`.
    """
    if start >= end:
        raise InvalidInput("since", "before until", format_moment(start))
    wanted = MINUTE if end - start <= 2 * HOUR else TEN_MINUTES
    wanted = HOUR if end - start > 36 * HOUR else wanted
    kept = MINUTE if now - start <= detail_ms else TEN_MINUTES
    kept = HOUR if now - start > 7 * detail_ms else kept
    step = max(wanted, kept)
    while step < HOUR and (end - start) // step * max(1, each) > MAX_ROWS:
        step = TEN_MINUTES if step == MINUTE else HOUR
    if (end - start) // step > MAX_SLOTS:
        days = MAX_SLOTS * HOUR // 86_400_000
        raise InvalidInput("since", f"at most {days} days before until", format_moment(start))
    return Span(slot_of(start, step), slot_of(end - 1, step) + step, step)


def rewind(record: JobRecord, events: Sequence[Event]) -> JobRecord:
    """Returns a job as it was after these events, all up to a moment."""
    past = JobPast(adjustment=record.facts.adjustment)
    lease: Lease | None = None
    for event in events:
        data = event.details
        if event.kind == EventKind.PRIORITY:
            past.adjustment = data["adjustment"]
        elif event.kind == EventKind.SUPERSEDE:
            past.superseded_by = data["by"]
        elif event.kind == EventKind.JOB:
            apply_move(past, event, data)
            lease = _lease_after(lease, event)
    successor = None if past.superseded_by is None else JobId(past.superseded_by)
    facts = record.facts._replace(adjustment=past.adjustment, superseded_by=successor)
    tried = {number for number, *_ in past.tries}
    shown = record._replace(
        facts=facts, state=past.state, not_before=None, progress=None, dynamic=None, lease=None,
        attempts=tuple(row for row in record.attempts if row.number in tried),
    )  # fmt: skip
    if past.ended:
        return shown
    facts = facts._replace(
        state=None, flags=facts.flags & ~QUARANTINED, attempt=AttemptNo(past.attempt),
        worker=None, incarnation=None, failed=past.failed, lost=past.lost, returned=past.returned,
        handed_back=past.handed_back,
    )  # fmt: skip
    return shown._replace(
        facts=facts, assigned_at=None, started_at=None, finished_at=None, failure=0,
        exit_code=None, message=None, reason=None, result=None, artifacts=(), log=None,
        lease=lease, worker=None,
    )  # fmt: skip


def _lease_after(lease: Lease | None, event: Event) -> Lease | None:
    """Returns the lease of a job after one of its transitions."""
    if event.to == ASSIGNED:
        return Lease(
            JobId(event.job), AttemptNo(event.attempt), LeaseNo(0), WorkerId(event.worker),
            event.incarnation, event.to, event.at, None, None, None, None, None, None, None,
        )  # fmt: skip
    if lease is None or event.to not in ACTIVE_CODES:
        return None
    started = event.at if event.to == RUNNING else lease.started_at
    return lease._replace(state=event.to, started_at=started)


LOOKED: Final = 500  # jobs that one page looks at
PART: Final = 5  # jobs that are rewound in one view


class PastJobs:
    """Reads jobs as they were. Jobs that were deleted since are not shown."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def job(self, job: int, who: Identity, as_of: str) -> Job:
        """Returns one job as it was; raises `NotFound` if it did not exist."""

        async def read(tx: ReadTx) -> Job | None:
            point = await find_point(tx, as_of)
            view = await tx.views.job(job)
            if view is None or view.facts.created_at > point.at:
                return None
            catalog = self._engine.catalog
            await catalog.know(tx, {view.facts.shape})
            if not sees(who, catalog.shapes[view.facts.shape].namespace):
                return None
            events = [e for e in await tx.log.of_job(job) if e.seq <= point.seq]
            (past,) = await self._rewound(tx, [view], point)
            names = dict(view.workers)
            if view.facts.worker is not None and view.worker is not None:
                names[view.facts.worker] = view.worker
            if past.lease is not None and past.worker is not None:
                names[past.lease.worker] = past.worker
            submitted_by = decode_spec(view.spec).submitted_by
            moves = show_transitions(events, names, submitted_by, view.attempts)
            return msgspec.structs.replace(self._show(past), transitions=moves)

        shown = await self._engine.store.read(read)
        if shown is None:
            raise NotFound("job", job)
        return shown

    async def jobs(
        self, wanted: JobFilter, after: Place | None, limit: int, sort: JobSort, as_of: str
    ) -> JobList:
        """Returns a page of jobs as they were, newest first."""
        if sort is not JobSort.NEWEST:
            raise InvalidInput("sort", "newest, if as_of is given", sort)

        store = self._engine.store
        point = await store.read(lambda tx: find_point(tx, as_of))
        states = states_of(wanted)
        then = min(point.at + 1, wanted.created_to or point.at + 1)
        base = wanted._replace(
            states=(), failures=(), dead=False, current=False, finished_from=None,
            finished_to=None, created_to=then,
        )  # fmt: skip
        cursor, looked = (after[1] if after else 0), 0
        found: list[JobRecord] = []
        while looked < LOOKED:
            page = await store.read(partial(_page, base, cursor, min(LOOKED, 2 * limit)))
            looked += max(page.looked, 1)
            for record in await self._rewound_in_parts(page.jobs, point):
                matches = not states or record.state in states
                if wanted.dead or wanted.current:
                    matches = matches and not record.facts.superseded_by
                if matches and fitting(wanted, [text_of(record)]):
                    found.append(record)
                if len(found) == limit:
                    return await self._list(found, (0, record.facts.id), looked, point)
            cursor = page.next
            if not cursor:
                return await self._list(found, None, looked, point)
        return await self._list(found, (0, cursor), looked, point)

    async def _rewound_in_parts(
        self, records: Sequence[JobRecord], point: PastPoint
    ) -> list[JobRecord]:
        """Rewinds a few at a time: the past is the same in every view, and others have a turn."""
        found: list[JobRecord] = []
        for start in range(0, len(records), PART):
            part = partial(self._rewound, records=records[start : start + PART], point=point)
            found += await self._engine.store.read(part)
        return found

    async def _list(
        self,
        found: Sequence[JobRecord],
        following: Place | None,
        looked: int,
        point: PastPoint,
    ) -> JobList:
        shapes = {record.facts.shape for record in found}
        await self._engine.store.read(partial(self._engine.catalog.know, shapes=shapes))
        jobs = [self._show(record) for record in found]
        return JobList(jobs, format_place(following), looked, format_moment(point.at))

    async def _rewound(
        self, tx: ReadTx, records: Sequence[JobRecord], point: PastPoint
    ) -> list[JobRecord]:
        """Takes back what happened after the point; one that had ended needs no events."""
        successors = [r.facts.superseded_by for r in records if r.facts.superseded_by]
        born = await tx.jobs.read(sorted(successors))
        found: list[JobRecord] = []
        for record in records:
            ended_at = record.finished_at
            if ended_at is not None and ended_at <= point.at:
                successor = born.get(record.facts.superseded_by or 0)
                if successor is None or successor.created_at > point.at:
                    record = record._replace(facts=record.facts._replace(superseded_by=None))
                found.append(record)
                continue
            events = [e for e in await tx.log.of_job(record.facts.id) if e.seq <= point.seq]
            if events:
                found.append(rewind(record, events))
        workers = sorted({r.lease.worker for r in found if r.lease is not None})
        names = await tx.views.worker_names(workers)
        return [
            r if r.lease is None else r._replace(worker=names.get(r.lease.worker)) for r in found
        ]

    def _show(self, record: JobRecord) -> Job:
        shape = self._engine.catalog.shapes[record.facts.shape]
        return show_job(record, shape, self._engine, (), Outlook(), NO_DEPENDENCIES)


async def _page(wanted: JobFilter, cursor: int, count: int, tx: ReadTx) -> JobPage:
    return await tx.views.jobs(wanted, cursor, count)


MAX_FLEET: Final = 20_000  # events about workers that are replayed


async def past_workers(engine: Engine, as_of: str) -> list[WorkerInfo]:
    """Returns the workers of a moment, with how many jobs each held.

    When a worker was last seen is not kept: its last event by then stands for it.
    """

    async def read(tx: ReadTx) -> list[WorkerInfo]:
        point = await find_point(tx, as_of)
        events = await tx.views.fleet_events(0, point.seq, MAX_FLEET + 1)
        if len(events) > MAX_FLEET:
            expected = f"a time before which the log has at most {MAX_FLEET} events of workers"
            raise InvalidInput("as_of", expected, format_moment(point.at))
        known: dict[int, Worker] = {worker.id: worker for worker in await tx.workers.all()}
        own = [event for event in events if event.kind == EventKind.WORKER]
        ids = sorted({*known, *(event.worker for event in own)})
        past = workers_from(await tx.retention.baseline(BaselineKind.WORKER, ids))
        for event in own:
            worker = past.setdefault(event.worker, WorkerPast())
            apply_worker_event(worker, event, event.details)
        present = sorted(number for number, worker in past.items() if not worker.removed)
        names = await tx.views.worker_names(present)
        held = await _held(tx, point)
        rows = [_row(number, past[number], known.get(number), own, names) for number in present]
        return [show_worker(WorkerView(row, held.get(row.id, 0))) for row in rows]

    return await engine.store.read(read)


async def _held(tx: ReadTx, point: PastPoint) -> dict[int, int]:
    """Returns how many jobs each worker held: those of now, and back from there."""
    views = await tx.views.workers_with_counts()
    held: dict[int, int] = {view.worker.id: view.leases for view in views}
    newest = await tx.log.newest()
    changes = await tx.series.held_since(point.seq, newest, MAX_EVENTS)
    if changes is None:
        expected = f"a time after which at most {MAX_EVENTS} events have happened"
        raise InvalidInput("as_of", expected, format_moment(point.at))
    for worker, change in changes.items():
        held[worker] = held.get(worker, 0) - change
    return held


def _row(
    number: int,
    past: WorkerPast,
    known: Worker | None,
    events: list[Event],
    names: Mapping[int, str],
) -> Worker:
    mine = [event for event in events if event.worker == number]
    enrolled = [e.at for e in mine if '"enrolled"' in (e.data or "")]
    last = mine[-1] if mine else None
    seen = last.at if last is not None else (known.enrolled_at if known is not None else 0)
    first = known.enrolled_at if known is not None else (enrolled[0] if enrolled else seen)
    return Worker(
        id=WorkerId(number),
        name=names.get(number, str(number)),
        incarnation=past.incarnation,
        seq=0,
        status=past.status,
        last_seen=seen,
        last_lease=0,
        slots=past.slots or (known.slots if known is not None else 0),
        static=past.static or "{}",
        dynamic=past.dynamic or "{}",
        troubles=None,
        reason=None if last is None else last.reason,
        enrolled_at=first,
    )
