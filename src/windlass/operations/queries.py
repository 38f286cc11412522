"""Reads jobs and events as callers see them, and only those they may see."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from windlass.domain.access.rights import Action, Identity, may, sees
from windlass.domain.job.job import decode_spec
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.gaps import given_again
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter, JobSort, Place, SortedPage
from windlass.domain.values.errors import NotFound
from windlass.engine.engine import Engine
from windlass.engine.explain.forecast import Outlook
from windlass.engine.inbox import Inbox
from windlass.messages.jobs import Job, JobCount, JobList
from windlass.operations.dependencies import Dependencies, newest_ids, read_dependencies
from windlass.operations.parse import format_place
from windlass.operations.render import (
    show_job,
    show_steps,
    show_transitions,
)
from windlass.ports.loop_time import give_way_if_long
from windlass.store.sql.transaction import ReadTx

PAGE_LIMIT = 1_000


class Queries:
    """Reads what callers see; raises `NotFound` for what they may not see."""

    def __init__(self, engine: Engine, inbox: Inbox | None = None) -> None:
        self._engine = engine
        self._inbox = inbox

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
        """Returns the jobs that the caller may see, in the given order, as lists show them."""

        async def read(tx: ReadTx) -> tuple[Sequence[JobRecord], _Beside]:
            views = await self._seen(who, tx, await tx.views.some(ids))
            return views, await self._beside(tx, views)

        return await self._listed(*await self._engine.store.read(read))

    async def visible_events(self, events: Sequence[Event], who: Identity) -> list[Event]:
        """Returns the events that the caller may see: all, or those of jobs in its namespaces.

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

    async def _seen(self, who: Identity, tx: ReadTx, views: Sequence[JobRecord]) -> list[JobRecord]:
        """Returns which of the jobs the caller may see."""
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
