"""Writing jobs with ties: rows, edges and places, ready, planned or waiting."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

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


class _Kind:
    """Jobs of one mould, base and workflow: what they share, and which of them do what."""

    __slots__ = ("age_from", "base", "counts", "made", "mould", "rank", "shape", "workflow")

    def __init__(self, draft: Draft, shape: int, age_from: int, place: int) -> None:
        self.mould = draft.job.mould
        self.base = draft.base
        self.workflow = draft.workflow
        self.shape = shape
        self.age_from = age_from
        self.rank = place
        self.made: dict[int, list[int]] = {}  # by state, shared with other kinds
        self.counts = {BLOCKED: 0, QUEUED: 0}

    def has(self, draft: Draft) -> bool:
        """Whether this job is of the kind too."""
        return (
            draft.job.mould is self.mould
            and draft.base == self.base
            and draft.workflow == self.workflow
        )


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
        self._kinds: list[_Kind] = []
        self._made: dict[int | None, dict[int, list[int]]] = {}  # base to be told, state

    def add_all(self, drafts: Sequence[Draft], shapes: Mapping[str, int]) -> None:
        """Write down all jobs, which come ascending by id."""
        kinds: list[_Kind] = []
        kind: _Kind | None = None
        for draft in drafts:
            if kind is None or not kind.has(draft):
                kind = self._kind(draft, shapes[draft.job.mould.digest])
            kinds.append(kind)
            draft.rank = kind.rank
        self._rank(drafts)
        for draft, its in zip(drafts, kinds, strict=True):
            self._add(draft, its)

    def _kind(self, draft: Draft, shape: int) -> _Kind:
        spec, work = draft.job.spec, self._work
        workflow = self._groups.get(draft.workflow)
        created = workflow.created_at if workflow else work.now
        age_from = age_from_ms(created, spec.not_before or None, None)
        total = level(work.catalog.weight(spec.queue), draft.base, 0)
        kind = _Kind(draft, shape, age_from, rank(age_from, total, work.catalog.interval_ms))
        # The base is told where the spec alone does not tell it.
        told = draft.base if draft.base or is_relative(spec) else None
        kind.made = self._made.setdefault(told, {BLOCKED: [], QUEUED: []})
        self._kinds.append(kind)
        return kind

    def _rank(self, drafts: Sequence[Draft]) -> None:
        """Each job by the best among itself and those behind it."""
        if len({kind.rank for kind in self._kinds}) > 1:
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

    def _add(self, draft: Draft, kind: _Kind) -> None:
        mould, job_id, spec = kind.mould, draft.id, draft.job.spec
        flags = mould.flags | LENDS if draft.lends else mould.flags
        self.rows.append(
            NewJob(
                job_id, kind.shape, kind.workflow, flags, draft.rank, kind.base, 0, kind.age_from,
                self._work.now, draft.limit, mould.timeout_ms, mould.idle_ms, 0,
                _resolved_body(draft),
            )
        )  # fmt: skip
        if spec.start_before or spec.finish_before:
            self.deadlines += deadlines_of(spec, job_id)
        ticket = Ticket(kind.shape, draft.rank, job_id, 0, kind.workflow, draft.limit, None)
        unsatisfied = self._count_unmet(draft)
        not_before = spec.not_before or 0
        state = BLOCKED if draft.unmet else QUEUED
        kind.made[state].append(job_id)
        kind.counts[state] += 1
        if draft.unmet:
            manual = 1 if mould.flags & MANUAL else 0
            self.waits.append(Wait(job_id, draft.unmet, manual, not_before, kind.age_from, ticket))
            if unsatisfied:
                self.doomed.append(draft)
        elif not_before > self._work.now:
            self.dues.append(Due(not_before, job_id, QUEUED, ticket))
            self._work.effects.fall_due(not_before)
        else:
            self.ready.append(ticket)

    def count(self) -> None:
        """Record the first transitions, equal ones together."""
        for told, made in self._made.items():
            data = None if told is None else {"base": told}
            for state, jobs in made.items():
                if jobs:
                    self._work.move_all(jobs, (0,) * len(jobs), ((0, state),), data=data)
        for kind in self._kinds:
            for state, jobs_alike in kind.counts.items():
                if jobs_alike:
                    self._work.count_moves(kind.shape, kind.workflow, 0, state, jobs_alike)

    def _count_unmet(self, draft: Draft) -> bool:
        """Count what the job waits for; whether a dependency has already failed it."""
        unsatisfied = False
        edges, outside, edge = self.edges, self._outside, draft.id * 2
        unmet = 1 if draft.job.mould.flags & MANUAL else 0
        if not outside:
            for job in draft.after:
                edges[job].append(edge)
            for job in draft.any_after:
                edges[job].append(edge + 1)
            draft.unmet = unmet + len(draft.after) + len(draft.any_after)
            return False
        for job in draft.after:
            fact = outside.get(job)
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
    sheet.add_all(sorted(fresh, key=lambda d: d.id), shapes)
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
    names = b'"after":%b}' % _encode(spec.after)
    if spec.workflow is None and draft.job.body.endswith(names):  # its last field
        ids = b'"after":%b' % _encode(draft.after)
        into = b',"workflow":%d}' % draft.workflow if draft.workflow else b"}"
        return draft.job.body[: -len(names)] + ids + into
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
