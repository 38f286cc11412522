"""Jobs as they were at an earlier moment: one, or a page of a list."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from windlass.domain.access.rights import Identity, sees
from windlass.domain.job.job import decode_spec
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter, JobPage, JobSort, Place
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.explain.forecast import Outlook
from windlass.messages.jobs import Job, JobList
from windlass.operations.dependencies import NO_DEPENDENCIES
from windlass.operations.parse import format_place
from windlass.operations.past.moments import PastPoint, find_point
from windlass.operations.past.rewind import Course, rewind
from windlass.operations.render import show_job, show_transitions
from windlass.store.job_filters import fitting, states_of, text_of
from windlass.store.sql.transaction import ReadTx

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
            raise InvalidInput("sort", "newest, for the past", sort)

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
                found.append(rewind(record, Course(events)))
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
