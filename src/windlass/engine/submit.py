"""Submitting: checked jobs become rows, ready or waiting, in one transaction.

A submission is all or nothing. Plain jobs, which have no ties to anything, take a short
way; the others are resolved first: names to ids, keys to jobs, parents to priorities.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.domain.errors import Conflict, InvalidInput, WindlassError
from windlass.domain.graph import order_by_dependencies
from windlass.domain.job import ALLOW_FAILURE, MANUAL, JobSpec, Mould, Prepared
from windlass.domain.rank import age_from_ms, level, rank
from windlass.domain.records import (
    Cascade,
    Due,
    JobColumns,
    JobFacts,
    KeyRow,
    NewJob,
    Ticket,
    Wait,
    WorkflowRow,
)
from windlass.domain.states import State
from windlass.domain.workflow import COUNTS, ENDED, WorkflowState
from windlass.engine.catalog import Catalog
from windlass.engine.dependents import CascadeKind
from windlass.engine.enqueue import make_ready
from windlass.engine.submission import Submission, Submitted, said_before
from windlass.engine.work import Work

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
COMPLETED = State.COMPLETED.code

_encode = msgspec.json.Encoder(order="deterministic").encode


def is_plain(submission: Submission) -> bool:
    """Whether no job of it has ties, so that it can share a transaction with others."""
    if submission.workflow is not None:
        return False
    last: Mould | None = None
    for job in submission.jobs:
        mould = job.mould
        if mould is not last:  # alike jobs share one
            if not mould.plain:
                return False
            last = mould
    return True


async def submit(work: Work, submissions: Sequence[Submission]) -> list[Submitted | WindlassError]:
    """Write a batch of submissions, or raise what stands against one of them."""
    plain = [s for s in submissions if is_plain(s)]
    answers: dict[int, Submitted | WindlassError] = {}
    if plain:
        answers = await _submit_all_plain(work, plain)
    for submission in submissions:
        if id(submission) not in answers:
            answers[id(submission)] = await _submit_tied(work, submission)
    return [answers[id(s)] for s in submissions]


async def _submit_all_plain(
    work: Work, submissions: Sequence[Submission]
) -> dict[int, Submitted | WindlassError]:
    """The answers, by identity: what has been said before is not written again."""
    ids = await work.tx.jobs.allocate(sum(len(s.jobs) for s in submissions))
    places: dict[int, Sequence[int]] = {}
    start = 0
    for submission in submissions:
        places[id(submission)] = ids[start : start + len(submission.jobs)]
        start += len(submission.jobs)
    answers = await said_before(work, submissions, places)
    new = [s for s in submissions if id(s) not in answers]
    if new:
        taken = [job_id for s in new for job_id in places[id(s)]] if answers else ids
        await _submit_plain(work, [job for s in new for job in s.jobs], taken)
    for submission in new:
        mine = tuple(places[id(submission)])
        answers[id(submission)] = Submitted(mine, (True,) * len(mine))
    return answers


async def _submit_plain(work: Work, jobs: list[Prepared], ids: Sequence[int]) -> None:
    """Jobs with no ties: their rows in one pass, ready at once."""
    shapes = await work.intern(jobs)
    rows, groups = plain_rows(work.catalog, shapes, jobs, ids, work.now)
    await work.tx.flow.enter(rows)
    work.move_all(ids, (0,) * len(ids), ((0, QUEUED),))
    for group in groups:
        work.effects.arrive_at(group.shape, group.rank, group.first, group.count)
        work.count_moves(group.shape, 0, 0, QUEUED, group.count)


class Group:
    """Jobs of one shape and base priority, which share a rank."""

    __slots__ = ("base", "count", "first", "mould", "rank", "shape")

    def __init__(self, mould: Mould, shape: int, base: int, place: int, first: int) -> None:
        self.mould = mould  # of the newest
        self.shape = shape
        self.base = base
        self.rank = place
        self.first = first
        self.count = 0


def plain_rows(
    catalog: Catalog,
    shapes: Mapping[str, int],
    jobs: Sequence[Prepared],
    ids: Sequence[int],
    now: int,
) -> tuple[list[JobColumns], Iterable[Group]]:
    """The rows of jobs with no ties, and what they have in common."""
    rows: list[JobColumns] = []
    groups: dict[tuple[str, int | None], Group] = {}
    group: Group | None = None
    for job_id, job in zip(ids, jobs, strict=True):
        mould = job.mould
        if group is None or mould is not group.mould:
            group = groups.get((mould.digest, mould.base))
            if group is None:
                group = _group(catalog, mould, shapes[mould.digest], job_id, now)
                groups[mould.digest, mould.base] = group
            group.mould = mould
            shape, place, base = group.shape, group.rank, group.base
            flags, timeout_ms, idle_ms = mould.flags, mould.timeout_ms, mould.idle_ms
        group.count += 1
        rows.append(
            (job_id, shape, 0, flags, place, base, 0, now, now, 0, timeout_ms, idle_ms, 0,
             job.body)
        )  # fmt: skip
    return rows, groups.values()


def _group(catalog: Catalog, mould: Mould, shape: int, first: int, now: int) -> Group:
    base = mould.base or 0
    priority = level(catalog.weight(mould.shape.queue), base, 0)
    return Group(mould, shape, base, rank(now, priority, catalog.interval_ms), first)


class _Draft:
    """A job of a submission with ties, while its ids and edges are being found."""

    __slots__ = (
        "after",
        "any_after",
        "base",
        "id",
        "index",
        "job",
        "known",
        "limit",
        "unmet",
        "workflow",
    )

    def __init__(self, index: int, job: Prepared) -> None:
        self.index = index
        self.job = job
        self.id = 0
        self.known = 0  # the job that already has this key
        self.base = job.mould.base or 0
        self.limit = 0
        self.after: list[int] = []
        self.any_after: list[int] = []
        self.unmet = 0
        self.workflow = 0


async def _submit_tied(work: Work, submission: Submission) -> Submitted | WindlassError:
    """Jobs with names, keys, dependencies, limits, parents or a workflow."""
    drafts = [_Draft(index, job) for index, job in enumerate(submission.jobs)]
    order = order_by_dependencies([draft.job.spec for draft in drafts])
    ids = await work.tx.jobs.allocate(len(drafts))
    _number(drafts, order, ids)
    if drafts:
        said = await said_before(work, [submission], {id(submission): ids})
        if id(submission) in said:
            return await _answer_again(work, said[id(submission)], drafts, order)
    await _reserve(work, drafts)
    fresh = [draft for draft in drafts if not draft.known]
    outside = await _resolve(work, drafts, fresh)
    groups, new = await _open_workflows(work, submission, fresh)
    for draft in fresh:
        draft.workflow = new or draft.job.spec.workflow or 0
    await _write(work, fresh, outside, groups)
    found = tuple(draft.known or draft.id for draft in drafts)
    return Submitted(found, tuple(not draft.known for draft in drafts), new)


def _number(drafts: list[_Draft], order: list[int], ids: Sequence[int]) -> None:
    """Give ids in the order of dependencies."""
    for job_id, index in zip(ids, order, strict=True):
        drafts[index].id = job_id


async def _answer_again(
    work: Work, said: Submitted | WindlassError, drafts: list[_Draft], order: list[int]
) -> Submitted | WindlassError:
    """What was answered the first time: ids follow from the order, keys from their table."""
    if not isinstance(said, Submitted):
        return said
    _number(drafts, order, sorted(said.ids))
    await _reserve(work, drafts)
    ids = tuple(draft.known or draft.id for draft in drafts)
    facts = await work.tx.jobs.read(ids[:1])
    workflow = facts[ids[0]].workflow if ids[0] in facts else 0
    return Submitted(ids, (False,) * len(ids), workflow)


async def _reserve(work: Work, drafts: list[_Draft]) -> None:
    """Find out which keys are known."""
    rows: dict[tuple[str, str], KeyRow] = {}
    for draft in drafts:
        spec = draft.job.spec
        if spec.key is None:
            continue
        row = KeyRow(spec.namespace, spec.key, draft.id, draft.job.body_digest or "")
        first = rows.setdefault((spec.namespace, spec.key), row)
        _same_body(first, row, draft)
        draft.known = first.job if first is not row else 0
    if not rows:
        return
    standing = await work.tx.jobs.claim_keys([rows[key] for key in sorted(rows)])
    for draft in drafts:
        spec = draft.job.spec
        if spec.key is None:
            continue
        found = standing[spec.namespace, spec.key]
        _same_body(found, KeyRow("", "", 0, draft.job.body_digest or ""), draft)
        if found.job != draft.id:
            draft.known = found.job


def _same_body(found: KeyRow, row: KeyRow, draft: _Draft) -> None:
    if found.digest != row.digest:
        raise Conflict(
            "key_conflict",
            f"expected jobs[{draft.index}].key {draft.job.spec.key!r} to name one job, "
            f"got another body than job {found.job} was submitted with",
        )


async def _resolve(work: Work, drafts: list[_Draft], fresh: list[_Draft]) -> dict[int, JobFacts]:
    """Turn references into ids; lock and read the jobs outside of this submission."""
    names = {d.job.spec.name: d.known or d.id for d in drafts if d.job.spec.name is not None}
    for draft in fresh:
        spec = draft.job.spec
        draft.after = sorted({_id_of(names, ref, draft, "after") for ref in spec.after})
        among_after = set(draft.after)
        wanted = {_id_of(names, ref, draft, "after_any") for ref in spec.after_any}
        draft.any_after = sorted(wanted - among_after)
    own = {draft.id for draft in fresh}
    named = {j for d in fresh for j in (*d.after, *d.any_after) if j not in own}
    named |= {d.job.spec.parent for d in fresh if d.job.spec.parent is not None}
    outside = await work.tx.jobs.share(sorted(named)) if named else {}
    for draft in fresh:
        _check_references(draft, outside)
    await work.catalog.know(work.tx, (fact.shape for fact in outside.values()))
    _check_namespaces(work, fresh, outside)
    limits = {
        (d.job.spec.namespace, d.job.spec.concurrency.key): d.job.spec.concurrency.max
        for d in fresh
        if d.job.spec.concurrency is not None
    }
    if limits:
        ids = await work.tx.limits.intern([(*key, limits[key]) for key in sorted(limits)])
        await work.slots.hold(ids.values())  # before workflows are locked
        for draft in fresh:
            spec = draft.job.spec
            if spec.concurrency is not None:
                draft.limit = ids[spec.namespace, spec.concurrency.key]
    return outside


def _id_of(names: dict[str, int], reference: int | str, draft: _Draft, field: str) -> int:
    if isinstance(reference, int):
        return reference
    found = names.get(reference)
    if found is None:
        known = ", ".join(sorted(names)[:5]) or "none"
        where = f"jobs[{draft.index}].{field}"
        raise InvalidInput(where, f"the name of a job in this submission ({known})", reference)
    return found


def _check_references(draft: _Draft, outside: dict[int, JobFacts]) -> None:
    # An id that was guessed right, its own or a neighbour's, is not one of an existing job.
    spec = draft.job.spec
    for field, references in (("after", spec.after), ("after_any", spec.after_any)):
        for job in references:
            if isinstance(job, int) and job not in outside:
                where = f"jobs[{draft.index}].{field}"
                raise InvalidInput(where, "the id of an existing job", job)
    parent = draft.job.spec.parent
    if parent is not None:
        if parent not in outside:
            where = f"jobs[{draft.index}].parent"
            raise InvalidInput(where, "the id of an existing job", parent)
        if draft.job.mould.base is None:
            draft.base = outside[parent].base + outside[parent].adjustment


def _check_namespaces(work: Work, fresh: list[_Draft], outside: dict[int, JobFacts]) -> None:
    shapes = work.catalog.shapes
    for draft in fresh:
        for job in (*draft.after, *draft.any_after):
            fact = outside.get(job)
            if fact is not None and shapes[fact.shape].namespace != draft.job.spec.namespace:
                where = f"jobs[{draft.index}].after"
                expected = f"jobs of namespace {draft.job.spec.namespace}"
                raise InvalidInput(where, expected, f"job {job} of another namespace")


async def _open_workflows(
    work: Work, submission: Submission, fresh: list[_Draft]
) -> tuple[dict[int, WorkflowRow], int]:
    """Make the new workflow, or lock the existing ones that jobs are added to."""
    named = sorted({d.job.spec.workflow for d in fresh if d.job.spec.workflow is not None})
    if submission.workflow is None:
        rows = await work.tx.workflows.lock(named) if named else {}
        for workflow in named:
            _check_workflow(rows, workflow)
        return rows, 0
    if named:
        raise InvalidInput("jobs.workflow", "unset in the submission of a workflow", named[0])
    (new,) = await work.tx.workflows.allocate(1)
    row = WorkflowRow(
        new, submission.workflow.namespace, submission.workflow.name,
        int(WorkflowState.QUEUED), 1, 0, work.now, 0, (0,) * COUNTS,
    )  # fmt: skip
    await work.tx.workflows.insert([row])
    work.touch_workflow(new)
    return {new: row}, new


def _check_workflow(rows: dict[int, WorkflowRow], workflow: int) -> None:
    if workflow not in rows:
        raise InvalidInput("jobs.workflow", "the id of an existing workflow", workflow)
    state = WorkflowState(rows[workflow].state)
    if state in ENDED:
        raise Conflict("workflow_ended", f"workflow {workflow} has ended ({state.name.lower()})")


async def _write(
    work: Work, fresh: list[_Draft], outside: dict[int, JobFacts], groups: dict[int, WorkflowRow]
) -> None:
    shapes = await work.intern([draft.job for draft in fresh])
    rows: list[NewJob] = []
    waits: list[Wait] = []
    dues: list[Due] = []
    ready: list[Ticket] = []
    edges: dict[int, list[int]] = {}
    doomed: list[_Draft] = []
    for draft in sorted(fresh, key=lambda d: d.id):
        row, not_before = _row(work, draft, shapes[draft.job.digest], groups.get(draft.workflow))
        rows.append(row)
        ticket = Ticket(row.shape, row.rank, row.id, 0, row.workflow, row.limit, None)
        unsatisfied = _count_unmet(draft, outside, edges)
        blocked = bool(draft.unmet) or unsatisfied
        work.move(row.id, row.shape, row.workflow, 0, 0, BLOCKED if blocked else QUEUED,
                  data=_tell(draft))  # fmt: skip
        if blocked:
            manual = 1 if draft.job.mould.flags & MANUAL else 0
            waits.append(
                Wait(row.id, max(draft.unmet, 1), manual, not_before, row.age_from, ticket)
            )
            if unsatisfied:
                doomed.append(draft)
        elif not_before > work.now:
            dues.append(Due(not_before, row.id, QUEUED, ticket))
            work.effects.fall_due(not_before)
        else:
            ready.append(ticket)
    await work.tx.jobs.insert(rows)
    if edges:
        await work.tx.jobs.add_dependents(edges)
    if waits:
        await work.tx.places.add_waits(waits)
    if dues:
        await work.tx.places.add_due(dues)
    await make_ready(work, ready)
    _doom(work, doomed, outside)


def _tell(draft: _Draft) -> dict[str, object] | None:
    return {"base": draft.base} if draft.base else None


def _row(work: Work, draft: _Draft, shape: int, workflow: WorkflowRow | None) -> tuple[NewJob, int]:
    spec = draft.job.spec
    not_before = spec.not_before or 0
    created = workflow.created_at if workflow else work.now
    age_from = age_from_ms(created, not_before or None, None)
    weight = work.catalog.weight(spec.queue)
    place = rank(age_from, level(weight, draft.base, 0), work.catalog.interval_ms)
    mould = draft.job.mould
    row = NewJob(
        draft.id, shape, draft.workflow, mould.flags, place, draft.base, 0, age_from, work.now,
        draft.limit, mould.timeout_ms, mould.idle_ms, 0, _resolved_body(draft),
    )  # fmt: skip
    return row, not_before


def _resolved_body(draft: _Draft) -> bytes:
    """The spec as stored: references as ids."""
    spec: JobSpec = draft.job.spec
    if not spec.after and not spec.after_any:
        return draft.job.body
    return _encode(
        msgspec.structs.replace(spec, after=tuple(draft.after), after_any=tuple(draft.any_after))
    )


def _count_unmet(draft: _Draft, outside: dict[int, JobFacts], edges: dict[int, list[int]]) -> bool:
    """Count what the job waits for; whether a dependency has already failed it."""
    unsatisfied = False
    for job in draft.after:
        fact = outside.get(job)
        if fact is not None and fact.state:
            if _has_failed(fact):
                unsatisfied = True
                edges.setdefault(job, []).append(draft.id * 2)
                draft.unmet += 1
            continue
        edges.setdefault(job, []).append(draft.id * 2)
        draft.unmet += 1
    for job in draft.any_after:
        fact = outside.get(job)
        if fact is None or not fact.state:
            edges.setdefault(job, []).append(draft.id * 2 + 1)
            draft.unmet += 1
    if draft.job.mould.flags & MANUAL:
        draft.unmet += 1
    return unsatisfied


def _doom(work: Work, doomed: list[_Draft], outside: dict[int, JobFacts]) -> None:
    """A job that depends on a failed one is aborted like any other, by a cascade."""
    for draft in doomed:
        for job in draft.after:
            fact = outside.get(job)
            if fact is not None and _has_failed(fact):
                work.cascades.append(Cascade(0, job, CascadeKind.ABORT, 0, None))
                break


def _has_failed(fact: JobFacts) -> bool:
    """Whether the job ended in a way that its dependents cannot go on from."""
    return bool(fact.state) and fact.state != COMPLETED and not fact.flags & ALLOW_FAILURE
