"""Writing jobs with ties: rows, edges and places, ready, planned or waiting."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.inheritance import lift
from windlass.domain.job import ALLOW_FAILURE, LENDS, MANUAL, JobSpec
from windlass.domain.rank import age_from_ms, level, rank
from windlass.domain.records import (
    Cascade,
    CascadeKind,
    Due,
    JobFacts,
    NewJob,
    Ticket,
    Wait,
    WorkflowRow,
)
from windlass.domain.states import State
from windlass.engine.deadlines import deadlines_of, note_deadlines
from windlass.engine.drafts import Draft
from windlass.engine.enqueue import make_ready
from windlass.engine.inheritance import pass_on
from windlass.engine.joining import is_relative
from windlass.engine.work import Work

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
COMPLETED = State.COMPLETED.code

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Standing(NamedTuple):
    """What jobs alike share: since when they age, and their place in the order."""

    age_from: int
    rank: int


class _Sheet:
    """The rows of one submission, gathered."""

    def __init__(
        self, work: Work, outside: Mapping[int, JobFacts], groups: Mapping[int, WorkflowRow]
    ) -> None:
        self.rows: list[NewJob] = []
        self.waits: list[Wait] = []
        self.dues: list[Due] = []
        self.ready: list[Ticket] = []
        self.edges: defaultdict[int, list[int]] = defaultdict(list)
        self.doomed: list[Draft] = []
        self.deadlines: list[tuple[int, int]] = []
        self._work = work
        self._outside = outside
        self._groups = groups
        self._standings: dict[tuple[str, int, int, int], _Standing] = {}
        self._made: dict[tuple[int, int | None], list[int]] = {}  # state, base to be told
        self._counts: dict[tuple[int, int, int], int] = {}

    def rank(self, drafts: Sequence[Draft]) -> None:
        """Rank these jobs, ascending by id: each by the best among itself and those behind it."""
        for draft in drafts:
            draft.age_from, draft.rank = self._standing(draft)
        if len({standing.rank for standing in self._standings.values()}) > 1:
            own = {draft.id: draft.rank for draft in drafts}
            waits = {draft.id: (*draft.after, *draft.any_after) for draft in drafts}
            ranks, lenders = lift(own, waits)
            for draft in drafts:
                draft.rank = ranks[draft.id]
                draft.lends = draft.id in lenders
        if self._outside:
            self._rank_outside(drafts)

    def _rank_outside(self, drafts: Sequence[Draft]) -> None:
        """Existing jobs that one of these waits for may have to be ranked anew."""
        outside = self._outside
        better = []
        for draft in drafts:
            facts = (outside.get(job) for job in (*draft.after, *draft.any_after))
            if any(f is not None and not f.state and f.rank > draft.rank for f in facts):
                draft.lends = True
                better.append(draft.id)
        pass_on(self._work, better)

    def add(self, draft: Draft, shape: int) -> None:
        """Write down one job."""
        row = self._row(draft, shape)
        not_before = draft.job.spec.not_before or 0
        self.rows.append(row)
        if draft.job.spec.start_before or draft.job.spec.finish_before:
            self.deadlines += deadlines_of(draft.job.spec, row.id)
        ticket = Ticket(shape, row.rank, row.id, 0, row.workflow, row.limit, None)
        unsatisfied = self._count_unmet(draft)
        blocked = draft.unmet > 0
        self._tell(draft, shape, BLOCKED if blocked else QUEUED)
        if blocked:
            manual = 1 if draft.job.mould.flags & MANUAL else 0
            self.waits.append(Wait(row.id, draft.unmet, manual, not_before, row.age_from, ticket))
            if unsatisfied:
                self.doomed.append(draft)
        elif not_before > self._work.now:
            self.dues.append(Due(not_before, row.id, QUEUED, ticket))
            self._work.effects.fall_due(not_before)
        else:
            self.ready.append(ticket)

    def _tell(self, draft: Draft, shape: int, state: int) -> None:
        """The base is told where the spec alone does not tell it."""
        told = draft.base if draft.base or is_relative(draft.job.spec) else None
        self._made.setdefault((state, told), []).append(draft.id)
        kind = shape, draft.workflow, state
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def count(self) -> None:
        """Record the first transitions, equal ones together."""
        for (state, told), jobs in self._made.items():
            data = None if told is None else {"base": told}
            self._work.move_all(jobs, (0,) * len(jobs), ((0, state),), data=data)
        for (shape, workflow, state), jobs_alike in self._counts.items():
            self._work.count_moves(shape, workflow, 0, state, jobs_alike)

    def _row(self, draft: Draft, shape: int) -> NewJob:
        mould, work = draft.job.mould, self._work
        flags = mould.flags | LENDS if draft.lends else mould.flags
        return NewJob(
            draft.id, shape, draft.workflow, flags, draft.rank, draft.base, 0, draft.age_from,
            work.now, draft.limit, mould.timeout_ms, mould.idle_ms, 0, _resolved_body(draft),
        )  # fmt: skip

    def _standing(self, draft: Draft) -> _Standing:
        spec, work = draft.job.spec, self._work
        alike = spec.queue, draft.base, spec.not_before or 0, draft.workflow
        found = self._standings.get(alike)
        if found is None:
            workflow = self._groups.get(draft.workflow)
            created = workflow.created_at if workflow else work.now
            age_from = age_from_ms(created, spec.not_before or None, None)
            total = level(work.catalog.weight(spec.queue), draft.base, 0)
            place = rank(age_from, total, work.catalog.interval_ms)
            found = self._standings[alike] = _Standing(age_from, place)
        return found

    def _count_unmet(self, draft: Draft) -> bool:
        """Count what the job waits for; whether a dependency has already failed it."""
        unsatisfied = False
        edges, outside, edge = self.edges, self._outside, draft.id * 2
        unmet = 1 if draft.job.mould.flags & MANUAL else 0
        for job in draft.after:
            fact = outside.get(job) if outside else None
            if fact is not None and fact.state:
                if not has_failed(fact):
                    continue
                unsatisfied = True
            edges[job].append(edge)
            unmet += 1
        for job in draft.any_after:
            fact = outside.get(job)
            if fact is None or not fact.state:
                edges[job].append(edge + 1)
                unmet += 1
        draft.unmet = unmet
        return unsatisfied


async def write_drafts(
    work: Work,
    fresh: Sequence[Draft],
    outside: Mapping[int, JobFacts],
    groups: Mapping[int, WorkflowRow],
) -> None:
    """Write these jobs; `outside` are the others they name, `groups` their workflows."""
    shapes = await work.intern([draft.job for draft in fresh])
    sheet = _Sheet(work, outside, groups)
    ordered = sorted(fresh, key=lambda d: d.id)
    sheet.rank(ordered)
    for draft in ordered:
        sheet.add(draft, shapes[draft.job.mould.digest])
    sheet.count()
    await work.tx.jobs.insert(sheet.rows)
    if sheet.edges:
        known = {job: sheet.edges.pop(job) for job in outside if job in sheet.edges}
        await work.tx.jobs.start_dependents(sheet.edges)
        await work.tx.jobs.add_dependents(known)
    if sheet.waits:
        await work.tx.places.add_waits(sheet.waits)
    if sheet.dues:
        await work.tx.places.add_due(sheet.dues)
    await note_deadlines(work, sheet.deadlines)
    await make_ready(work, sheet.ready)
    _doom(work, sheet.doomed, outside)


def _resolved_body(draft: Draft) -> bytes:
    """The spec as stored: references as ids, and the workflow it belongs to."""
    spec: JobSpec = draft.job.spec
    if not spec.after and not spec.after_any:
        body = draft.job.body
        if draft.workflow and spec.workflow is None:
            body = body[:-1] + b',"workflow":%d}' % draft.workflow  # its last field
        return body
    return _encode(
        msgspec.structs.replace(
            spec,
            after=tuple(draft.after),
            after_any=tuple(draft.any_after),
            workflow=draft.workflow or None,
        )
    )


def _doom(work: Work, doomed: list[Draft], outside: Mapping[int, JobFacts]) -> None:
    """A job that depends on a failed one is aborted like any other, by a cascade."""
    for draft in doomed:
        for job in draft.after:
            fact = outside.get(job)
            if fact is not None and has_failed(fact):
                work.cascades.append(Cascade(0, job, CascadeKind.ABORT, 0, None))
                break


def has_failed(fact: JobFacts) -> bool:
    """Whether the job ended in a way that its dependents cannot go on from."""
    return bool(fact.state) and fact.state != COMPLETED and not fact.flags & ALLOW_FAILURE
