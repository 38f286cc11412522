"""Reads jobs, queues, workers and events as callers see them, and only those they may see."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.access.secrets import EVERYONE, KEY_START
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.rank import queue_weight
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.functions import without_functions
from windlass.domain.matching.shapes import NAMESPACES, Rate, Shape, opens_at, read_starts, room_in
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.gaps import given_again
from windlass.domain.rows.records import JobRecord, QueueRow
from windlass.domain.rows.views import JobFilter, JobSort, Place, SortedPage, WorkerView
from windlass.domain.values.errors import NotFound
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.explain.forecast import Outlook
from windlass.engine.fleet.workers import find_worker
from windlass.engine.history.series import Depths, read_counted
from windlass.engine.inbox import Inbox
from windlass.engine.transaction.catalog import Catalog
from windlass.messages.jobs import Job, JobCount, JobList
from windlass.messages.workers import QueueInfo, QueueRate, WorkerInfo
from windlass.operations.dependencies import Dependencies, newest_ids, read_dependencies
from windlass.operations.live_depths import RUNNING, LiveDepths
from windlass.operations.parse import format_place
from windlass.operations.past import past_workers
from windlass.operations.render import (
    show_job,
    show_queue,
    show_steps,
    show_transitions,
    show_worker,
)
from windlass.ports.loop_time import give_way_if_long
from windlass.store.sql.placement import HeldIndices
from windlass.store.sql.transaction import ReadTx

MAX_RATES: Final = 100

Rates = Mapping[str, list[QueueRate]]  # by queue


def running_in(depths: Depths) -> dict[str, int]:
    """Returns how many jobs of each queue workers hold, as the overview counts them."""
    codes = tuple(state.code for state in RUNNING)
    return _summed(depths, codes)


def queued_in(depths: Depths) -> dict[str, int]:
    """Returns how many jobs of each queue are queued."""
    return _summed(depths, (State.QUEUED.code,))


def seen_by(who: Identity, depths: Depths) -> Depths:
    """Returns the counts of the namespaces that the caller sees."""
    return {
        (namespace, queue): counts
        for (namespace, queue), counts in depths.items()
        if sees(who, namespace, Action.READ_FLEET)
    }


async def read_rates(tx: ReadTx, catalog: Catalog, who: Identity) -> Rates:
    """Returns the rates under which jobs wait now, by queue; at most 100 of them."""
    heads = {head.shape for head in await tx.places.heads()}
    await catalog.know(tx, heads)
    shapes = (catalog.shapes[number] for number in sorted(heads))
    found: dict[tuple[str, str, Rate], Shape] = {
        (one.queue, one.namespace, one.rate): one
        for one in shapes
        if one.rate is not None and sees(who, one.namespace, Action.READ_FLEET)
    }
    rates: dict[str, list[QueueRate]] = {}
    for queue, namespace, rate in sorted(found, key=str)[:MAX_RATES]:
        rates.setdefault(queue, []).append(await _rate(tx, namespace, rate))
    return rates


async def _rate(tx: ReadTx, namespace: str, rate: Rate) -> QueueRate:
    row = await tx.views.rate(namespace, rate.key)
    starts = [] if row is None else read_starts(row.starts)
    room = room_in(rate, starts, tx.now)
    return QueueRate(
        namespace=namespace,
        key=rate.key,
        max=rate.max,
        seconds=rate.per_ms / 1000,
        used=rate.max - room,
        next_at=None if room else format_moment(opens_at(rate, starts)),
    )


def _summed(depths: Depths, codes: tuple[int, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (_, queue), counts in depths.items():
        jobs = sum(counts.get(code, 0) for code in codes)
        if jobs > 0:
            found[queue] = found.get(queue, 0) + jobs
    return found


PAGE_LIMIT = 1_000

_shape = msgspec.json.Decoder(Shape).decode


class Queries:
    """Reads what callers see; raises `NotFound` for what they may not see."""

    def __init__(
        self, engine: Engine, inbox: Inbox | None = None, depths: LiveDepths | None = None
    ) -> None:
        self._engine = engine
        self._inbox = inbox
        self._depths = depths or LiveDepths(engine.catalog)

    async def job(self, job: int, who: Identity) -> Job:
        """Returns one job with its attempts and transitions."""
        try:
            return await self._job(job, who)
        except NotFound:
            return await self._job(await self.stands_for(job), who)

    async def stands_for(self, job: int) -> int:
        """Returns the job that an unknown id means, for a job of a user's own transaction.

        Moves what was committed a moment ago. Raises `NotFound` without an inbox.
        """
        if self._inbox is None:
            raise NotFound("job", job)
        return await self._inbox.job_for(job)

    async def catch_up(self) -> None:
        """Moves what users' own transactions have committed."""
        if self._inbox is not None:
            await self._inbox.move()

    async def _job(self, job: int, who: Identity) -> Job:

        async def read(tx: ReadTx) -> Job | None:
            view = await tx.views.job(job)
            if view is None:
                return None
            shapes = await self._engine.catalog.know(tx, [view.facts.shape])
            events = await tx.log.of_job(job)
            names = _worker_names(view)
            outlook = (await self._engine.explain.outlooks(tx, [view]))[job]
            submitted_by = decode_spec(view.spec).submitted_by
            dependencies = await read_dependencies(tx, view, partial(self._seen, who))
            moves = show_transitions(events, names, submitted_by, view.attempts)
            shape = shapes[view.facts.shape]
            shown = show_job(view, shape, self._engine, moves, outlook, dependencies)
            steps = (await tx.steps.of_jobs([job])).get(job)
            if not steps:
                return shown
            return msgspec.structs.replace(shown, steps=show_steps(steps, view.attempts))

        shown = await self._engine.store.read(read)
        if shown is None or not sees(who, shown.namespace):
            raise NotFound("job", job)
        return shown

    async def check_visible(self, jobs: Sequence[int], who: Identity) -> None:
        """Raises `NotFound` for the first job that does not exist for the caller."""
        if not who.namespaces:
            return
        places = await self.places(jobs)
        for job in jobs:
            if job not in places or not sees(who, places[job][0]):
                raise NotFound("job", job)

    async def check_workflows(self, workflows: Sequence[int], who: Identity) -> None:
        """Raises `NotFound` for the first workflow that does not exist for the caller."""
        if not who.namespaces or not workflows:
            return
        ids = sorted(set(workflows))
        rows = await self._engine.store.read(lambda tx: tx.workflows.read(ids))
        for workflow in ids:
            if workflow not in rows or not sees(who, rows[workflow].namespace):
                raise NotFound("workflow", workflow)

    async def check_given(self, kind: str, given: Mapping[int, int], who: Identity) -> None:
        """Raises `Lost` for a "job" or "workflow" that was made after the caller got its id.

        `given` says when (ms, 0: unknown). Raises `NotFound` for what the caller may not see.
        """
        ids = [number for number, at in given.items() if at]
        if not ids:
            return
        if kind == "job":
            await self.check_visible(ids, who)
            jobs = await self._engine.store.read(lambda tx: tx.jobs.read(ids))
            made = {job: facts.created_at for job, facts in jobs.items()}
        else:
            await self.check_workflows(ids, who)
            rows = await self._engine.store.read(lambda tx: tx.workflows.read(ids))
            made = {workflow: row.created_at for workflow, row in rows.items()}
        for number, at in made.items():
            if at > given[number]:
                raise given_again(kind, number, given[number])

    async def events(self, job: int, who: Identity) -> list[Event]:
        """Returns all events of one job."""
        await self.job(job, who)
        return list(await self._engine.store.read(lambda tx: tx.log.of_job(job)))

    async def count_jobs(self, wanted: JobFilter) -> JobCount:
        """Returns how many jobs match a filter, as far as a bounded search tells."""
        found = await self._engine.store.read(lambda tx: tx.views.count_jobs(wanted))
        return JobCount(found.found, found.is_whole, found.looked, found.estimate)

    async def jobs(
        self,
        wanted: JobFilter,
        after: Place | None,
        limit: int,
        sort: JobSort = JobSort.NEWEST,
        estimates: bool = False,
    ) -> JobList:
        """Returns a page of jobs, newest first unless they are sorted otherwise.

        With `estimates` it also says what is expected of each: counting the jobs before each that
        waits takes longer than all the rest.
        """

        async def read(tx: ReadTx) -> tuple[SortedPage, _Beside]:
            page = await tx.views.sorted_jobs(wanted, sort, after, limit)
            return page, await self._beside(tx, page.jobs, estimates)

        page, beside = await self._engine.store.read(read)
        shown = await self._listed(page.jobs, beside)
        return JobList(shown, format_place(page.next), page.looked)

    async def some_jobs(self, ids: Sequence[int], who: Identity) -> list[Job]:
        """Returns those of these jobs that the caller may see, in this order, as lists do."""

        async def read(tx: ReadTx) -> tuple[Sequence[JobRecord], _Beside]:
            views = await self._seen(who, tx, await tx.views.some(ids))
            return views, await self._beside(tx, views)

        return await self._listed(*await self._engine.store.read(read))

    async def visible_events(self, events: Sequence[Event], who: Identity) -> list[Event]:
        """Returns the events that the caller may see: all, or those of its namespaces' jobs.

        Only callers who may list tokens see who created them.
        """
        if not may(who, Action.MANAGE_TOKENS):
            events = [event for event in events if event.kind != EventKind.ACCESS]
        if not who.namespaces or not events:
            return list(events)
        places = await self.places([event.job for event in events if event.job])
        return [one for one in events if one.job in places and sees(who, places[one.job][0])]

    async def places(self, jobs: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Returns the namespace and the workflow (0: none) of jobs that exist."""

        async def read(tx: ReadTx) -> dict[int, tuple[str, int]]:
            facts = await tx.jobs.read(sorted(set(jobs)))
            shapes = await self._engine.catalog.know(tx, [fact.shape for fact in facts.values()])
            return {
                job: (shapes[fact.shape].namespace, fact.workflow or 0)
                for job, fact in facts.items()
            }

        return await self._engine.store.read(read)

    async def queues(self, who: Identity) -> set[str]:
        """Returns the queues that jobs of the caller's namespaces have used."""
        rows = await self._engine.store.read(lambda tx: tx.catalog.shapes_after(0))
        shapes = map(_shape, (row.body for row in rows))
        return {s.queue for s in shapes if sees(who, s.namespace, Action.READ_FLEET)}

    async def queue_list(self, who: Identity) -> list[QueueInfo]:
        """Returns the queues that have jobs or settings, and that the caller's namespaces use.

        Who does not see the whole fleet gets the numbers of their own namespaces.
        """
        store = self._engine.store
        sees_all = may(who, Action.READ_FLEET, FLEET)
        rows = await store.read(lambda tx: tx.catalog.queues())
        depths, rates = await store.read(partial(self._queue_counts, who=who))
        queued = (await self._engine.metrics()).queue_depth if sees_all else queued_in(depths)
        running = running_in(depths)
        known = {row.name: row for row in rows}
        names = {*known, *queued, *running}
        if not sees_all:
            names &= await self.queues(who)
        counted = [row.limit for row in rows if row.max_running and row.limit is not None]
        limits = await store.read(lambda tx: tx.limits.read(counted)) if sees_all else {}
        return [
            show_queue(row, limits, queued.get(name, 0), running.get(name, 0), rates.get(name, []))
            for name in sorted(names)
            for row in (known.get(name, QueueRow(name, queue_weight(name), 0)),)
        ]

    async def _queue_counts(self, tx: ReadTx, who: Identity) -> tuple[Depths, Rates]:
        depths = await self._depths.read(tx, *await read_counted(tx))
        return seen_by(who, depths), await read_rates(tx, self._engine.catalog, who)

    async def namespaces(self) -> list[str]:
        """Returns all namespaces that have had jobs."""
        rows = await self._engine.store.read(lambda tx: tx.catalog.shapes_after(0))
        return sorted({_shape(row.body).namespace for row in rows})

    async def workers(self, who: Identity, as_of: str | None = None) -> list[WorkerInfo]:
        """Returns all workers, without the names of namespaces that the caller may not see."""
        engine = self._engine
        found = await (self._workers() if as_of is None else past_workers(engine, as_of))
        return found if may(who, Action.READ_FLEET, FLEET) else [_limit(i, who) for i in found]

    async def _workers(self) -> list[WorkerInfo]:

        async def read(tx: ReadTx) -> list[WorkerInfo]:
            views = await tx.views.workers_with_counts()
            rows = await tx.placement.indices([view.worker.id for view in views])
            held: dict[int, list[HeldIndices]] = {}
            for row in rows:
                held.setdefault(row.worker, []).append(row)
            return [show_worker(view, held.get(view.worker.id, ())) for view in views]

        return await self._engine.store.read(read)

    async def worker(self, worker: int | str, who: Identity) -> WorkerInfo:
        """Returns one worker, by its name or its id."""

        async def read(tx: ReadTx) -> WorkerInfo:
            row = await find_worker(tx, worker)
            view = WorkerView(row, (await tx.leases.count([row.id])).get(row.id, 0))
            return show_worker(view, await tx.placement.indices([row.id]))

        found = await self._engine.store.read(read)
        return found if may(who, Action.READ_FLEET, FLEET) else _limit(found, who)

    async def _seen(self, who: Identity, tx: ReadTx, views: Sequence[JobRecord]) -> list[JobRecord]:
        """Returns those of these jobs that the caller may see."""
        shapes = await self._engine.catalog.know(tx, [view.facts.shape for view in views])
        return [view for view in views if sees(who, shapes[view.facts.shape].namespace)]

    async def _beside(
        self, tx: ReadTx, views: Sequence[JobRecord], estimates: bool = False
    ) -> "_Beside":
        explain = self._engine.explain
        shapes = await self._engine.catalog.know(tx, [view.facts.shape for view in views])
        outlooks = await (explain.outlooks if estimates else explain.levels)(tx, views)
        return _Beside(shapes, outlooks, Dependencies(await newest_ids(tx, views)))

    async def _listed(self, views: Sequence[JobRecord], beside: "_Beside") -> list[Job]:
        """Shows jobs, whose arguments may be long: others go first now and then."""
        shown = []
        for view in views:
            await give_way_if_long()
            shape, outlook = beside.shapes[view.facts.shape], beside.outlooks[view.facts.id]
            shown.append(show_job(view, shape, self._engine, (), outlook, beside.dependencies))
        return shown


class _Beside(NamedTuple):
    """What lists show of jobs beside their rows."""

    shapes: Mapping[int, Shape]
    outlooks: Mapping[int, Outlook]
    dependencies: Dependencies


def _worker_names(view: JobRecord) -> dict[int, str]:
    """Returns the names of all workers that had this job, the newest included."""
    newest = view.facts.worker if view.lease is None else view.lease.worker
    if newest is None or view.worker is None:
        return dict(view.workers)
    return dict(view.workers) | {newest: view.worker}


def _limit(info: WorkerInfo, who: Identity) -> WorkerInfo:
    """Leaves out of a worker's metadata what the caller may not see."""
    seen = partial(visible_metadata, who=who)
    return msgspec.structs.replace(
        info, static=seen(info.static), dynamic=seen(info.dynamic), metadata=seen(info.metadata)
    )


def visible_metadata(metadata: Mapping[str, Any], who: Identity) -> dict[str, Any]:
    """Leaves out which other namespaces a worker serves, has secrets for and knows code of."""
    kept = {key: _seen_names(key, value, who) for key, value in metadata.items()}
    return without_functions({key: value for key, value in kept.items() if value != []})


def _seen_names(key: str, value: Any, who: Identity) -> Any:
    if key != NAMESPACES and not key.startswith(KEY_START):
        return value
    names = value if isinstance(value, list) else [value]
    return [name for name in names if name == EVERYONE or sees(who, str(name), Action.READ_FLEET)]
