"""Writes jobs with references: rows, edges and places, ready, planned or waiting."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from windlass.domain.job.job import ALLOW_FAILURE, CONDITIONAL, LENDS, MANUAL, encode_spec
from windlass.domain.job.validation import Relations, with_relations
from windlass.domain.lifecycle.rank import age_from_ms, level, lift, rank
from windlass.domain.lifecycle.states import BLOCKED, COMPLETED, QUEUED
from windlass.domain.rows.records import (
    DECIDES,
    Cascade,
    CascadeKind,
    Due,
    JobColumns,
    JobFacts,
    Ticket,
    Wait,
    WorkflowRow,
)
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId
from windlass.engine.jobs.deadlines import deadlines_of, note_deadlines
from windlass.engine.jobs.places import make_ready
from windlass.engine.jobs.priority import pass_on
from windlass.engine.submit.join_workflow import is_relative
from windlass.engine.submit.resolve_references import GraphJob
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import LongList, aside, pages


class _JobRun:
    """Consecutive jobs of one kind, base priority and workflow, and what they share."""

    __slots__ = (
        "age_from",
        "base",
        "blocked",
        "drafts",
        "logged_base",
        "queued",
        "rank",
        "relations",
        "shape",
        "template",
        "workflow",
    )  # fmt: skip

    def __init__(self, draft: GraphJob, shape: ShapeId, age_from: int, place: int) -> None:
        self.template = draft.job.template
        self.base = draft.base
        self.workflow = draft.workflow
        self.shape = shape
        self.age_from = age_from
        self.rank = place
        self.relations = encode_spec(Relations(workflow=self.workflow))
        # The event holds the base only if it cannot be read from the spec.
        self.logged_base = draft.base if draft.base or is_relative(draft.job.spec) else None
        self.drafts: list[GraphJob] = []
        self.blocked: list[JobId] = []
        self.queued: list[JobId] = []

    def has(self, draft: GraphJob) -> bool:
        """Returns True if this job belongs to the run."""
        return (
            draft.job.template is self.template
            and draft.base == self.base
            and draft.workflow == self.workflow
        )


class _RowBatch:
    """The rows of one submission."""

    def __init__(
        self, work: Work, outside: Mapping[int, JobFacts], groups: Mapping[int, WorkflowRow]
    ) -> None:
        self.rows: list[JobColumns] = LongList()
        self.blocked: list[JobColumns] = []  # those of them that only wait for other jobs
        self.unmet: list[int] = []  # number of unmet conditions
        self.waits: list[Wait] = []
        self.dues: list[Due] = []
        self.ready: list[Ticket] = []
        self.edges: defaultdict[int, list[int]] = defaultdict(list)
        self.doomed: list[GraphJob] = []
        self.deadlines: list[tuple[int, int]] = []
        self._work = work
        self._outside = outside
        self._groups = groups
        self._kinds: list[_JobRun] = []

    def add_all(self, drafts: Sequence[GraphJob], shapes: Mapping[str, int]) -> None:
        """Adds all jobs, in ascending order of ids."""
        kind: _JobRun | None = None
        for draft in drafts:
            if kind is None or not kind.has(draft):
                kind = self._kind(draft, shapes[draft.job.template.digest])
                self._kinds.append(kind)
            kind.drafts.append(draft)
            draft.rank = kind.rank
            self.edges[draft.id] = []  # so that they ascend by id too
        self._rank(drafts)
        for kind in self._kinds:
            self._add(kind)

    def _kind(self, draft: GraphJob, shape: int) -> _JobRun:
        spec, work = draft.job.spec, self._work
        created = work.now if draft.workflow is None else self._groups[draft.workflow].created_at
        age_from = age_from_ms(created, spec.not_before_ms, None)
        total = level(work.catalog.weight(spec.queue), draft.base, 0)
        return _JobRun(
            draft, ShapeId(shape), age_from, rank(age_from, total, work.catalog.interval_ms)
        )

    def _rank(self, drafts: Sequence[GraphJob]) -> None:
        """Ranks each job by the best among itself and the jobs that wait for it."""
        if len({kind.rank for kind in self._kinds}) > 1:
            own: dict[int, int] = {draft.id: draft.rank for draft in drafts}
            waits: dict[int, Sequence[int]] = {
                draft.id: (*draft.after, *draft.any_after) for draft in drafts
            }
            ranks, lenders = lift(own, waits)
            for draft in drafts:
                draft.rank = ranks[draft.id]
                draft.lends = draft.id in lenders
        if self._outside:
            self._rank_outside(drafts)

    def _rank_outside(self, drafts: Sequence[GraphJob]) -> None:
        """Records that existing jobs which one of these waits for may get new ranks."""
        outside = self._outside
        better = []
        for draft in drafts:
            facts = (outside.get(job) for job in (*draft.after, *draft.any_after))
            if any(f is not None and f.is_open and f.rank > draft.rank for f in facts):
                draft.lends = True
                better.append(draft.id)
        pass_on(self._work, better)

    def _add(self, kind: _JobRun) -> None:
        """Adds the jobs of one run; the loop does not touch what they share."""
        template, shape, workflow, now = kind.template, kind.shape, kind.workflow, self._work.now
        flags, base, age_from, named = template.flags, kind.base, kind.age_from, template.only_named
        timeout_ms, idle_ms, rows = template.timeout_ms, template.idle_ms, self.rows
        tie = self._tie_to_outside if self._outside else self._tie
        for draft in kind.drafts:
            own = flags | LENDS if draft.lends else flags
            row = (
                draft.id, shape, workflow, own, draft.rank, base, 0, age_from, now, draft.limit,
                timeout_ms, idle_ms, None, _stored_spec(draft, kind),
            )  # fmt: skip
            rows.append(row)
            unmet = tie(draft)
            if unmet and named:
                kind.blocked.append(draft.id)
                self.blocked.append(row)
                self.unmet.append(unmet)
            else:
                self._put(draft, kind, unmet)

    def _put(self, draft: GraphJob, kind: _JobRun, unmet: int) -> None:
        """Chooses the place of a job that may have a time, a deadline or a manual condition."""
        spec, job_id = draft.job.spec, draft.id
        ticket = Ticket(
            kind.shape, draft.rank, job_id, AttemptNo(0), kind.workflow, draft.limit, None
        )
        self.deadlines += deadlines_of(spec, job_id)
        not_before = spec.not_before_ms
        manual = 1 if kind.template.flags & MANUAL else 0
        if kind.template.flags & CONDITIONAL:
            kind.blocked.append(job_id)
            wait = Wait(job_id, unmet or 1, DECIDES, not_before, kind.age_from, ticket)
            self.waits.append(wait)
            if not unmet:
                self._work.cascades.append(Cascade.of_job(job_id, CascadeKind.DECIDE))
            return
        if unmet + manual:
            kind.blocked.append(job_id)
            self.waits.append(
                Wait(job_id, unmet + manual, manual, not_before, kind.age_from, ticket)
            )
            return
        kind.queued.append(job_id)
        if not_before is not None and not_before > self._work.now:
            self.dues.append(Due(not_before, job_id, QUEUED, ticket))
            self._work.effects.fall_due(not_before)
        else:
            self.ready.append(ticket)

    def count(self) -> None:
        """Records the first transitions, equal ones together."""
        made: dict[tuple[int | None, int], list[int]] = {}
        for kind in self._kinds:
            for state, ids in ((BLOCKED, kind.blocked), (QUEUED, kind.queued)):
                if ids:
                    made.setdefault((kind.logged_base, state), []).extend(ids)
                    self._work.count_moves(kind.shape, kind.workflow, 0, state, len(ids))
        for (logged_base, state), jobs in made.items():
            data = None if logged_base is None else {"base": logged_base}
            self._work.move_all(jobs, (0,) * len(jobs), ((0, state),), data=data)

    def _tie(self, draft: GraphJob) -> int:
        """Adds the edges from the job to its dependencies; returns how many."""
        edges, edge = self.edges, draft.id * 2
        for job in draft.after:
            edges[job].append(edge)
        for job in draft.any_after:
            edges[job].append(edge + 1)
        return len(draft.after) + len(draft.any_after)

    def _tie_to_outside(self, draft: GraphJob) -> int:
        """Does the same if some of those may have ended, or have already failed the job."""
        edges, outside, edge = self.edges, self._outside, draft.id * 2
        unmet, unsatisfied = 0, False
        for job in draft.after:
            fact = outside.get(job)
            if fact is not None and not fact.is_open:
                if not has_failed(fact):
                    if draft.job.refers:  # so that retention keeps its result
                        edges[job].append(edge)
                    continue
                unsatisfied = True
            edges[job].append(edge)
            unmet += 1
        for job in draft.any_after:
            fact = outside.get(job)
            is_open = fact is None or fact.is_open
            unmet += is_open
            if is_open or draft.job.refers:
                edges[job].append(edge + 1)
        if unsatisfied:
            self.doomed.append(draft)
        return unmet


async def write_graph(
    work: Work,
    fresh: Sequence[GraphJob],
    outside: Mapping[int, JobFacts],
    groups: Mapping[int, WorkflowRow],
) -> None:
    """Writes these jobs; `outside` are the other jobs they name, `groups` their workflows."""
    shapes = await work.intern([draft.job for draft in fresh])
    sheet = _RowBatch(work, outside, groups)
    in_order = sorted(fresh, key=lambda d: d.id)
    await aside(len(fresh), lambda: sheet.add_all(in_order, shapes))
    sheet.count()
    for page in pages(sheet.rows):
        await work.tx.jobs.insert(page)
    if sheet.edges:
        known = {job: sheet.edges.pop(job) for job in outside if job in sheet.edges}
        await work.tx.jobs.start_dependents(sheet.edges)
        await work.tx.jobs.add_dependents(known)
    for blocked, unmet in zip(pages(sheet.blocked), pages(sheet.unmet), strict=True):
        await work.tx.flow.block(blocked, unmet)
    for waits in pages(sheet.waits):
        await work.tx.places.add_waits(waits)
    if sheet.dues:
        await work.tx.places.add_due(sheet.dues)
    await note_deadlines(work, sheet.deadlines)
    await make_ready(work, sheet.ready)
    _doom(work, sheet.doomed, outside)


def _stored_spec(draft: GraphJob, kind: _JobRun) -> bytes:
    """Returns the spec to store: references as ids, and the workflow it belongs to."""
    if not draft.after and not draft.any_after:
        return with_relations(draft.job.body, kind.relations)
    relations = Relations(draft.after or (), draft.any_after or (), kind.workflow)
    return with_relations(draft.job.body, encode_spec(relations))


def _doom(work: Work, doomed: list[GraphJob], outside: Mapping[int, JobFacts]) -> None:
    """Records a cascade that aborts a job which depends on a failed one."""
    for draft in doomed:
        for job in draft.after:
            fact = outside.get(job)
            if fact is not None and has_failed(fact):
                work.cascades.append(Cascade.of_job(JobId(job), CascadeKind.ABORT))
                break


def has_failed(fact: JobFacts) -> bool:
    """Returns True if the job ended in a way that aborts its dependents."""
    return not fact.is_open and fact.state != COMPLETED and not fact.flags & ALLOW_FAILURE
