"""Submits jobs: checked jobs become rows, ready or waiting, in one transaction.

A submission is all or nothing. Plain jobs, which refer to nothing, take a short path; the others
are resolved first: names to ids, keys to jobs, parents to priorities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

import msgspec

from windlass.domain.job.dependency_graph import Named, find_names
from windlass.domain.job.validation import JobTemplate, ValidatedJob
from windlass.domain.lifecycle.rank import level, rank
from windlass.domain.lifecycle.states import QUEUED
from windlass.domain.rows.records import JobColumns, JobFacts
from windlass.domain.values.errors import WindlassError
from windlass.domain.values.ids import JobId, WorkflowId
from windlass.engine.submit.join_workflow import Groups, base_of, join_workflows
from windlass.engine.submit.resolve_references import (
    GraphJob,
    reserve,
    resolve,
    settle_outputs,
    use_uploads,
)
from windlass.engine.submit.submission import (
    Submission,
    Submitted,
    known_answers,
    note_known,
    rows_of,
)
from windlass.engine.submit.write_graph import write_graph
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import PAGE, LongList, aside, give_way_if_long, pages


def is_plain(submission: Submission) -> bool:
    """Returns True if none of its jobs has references, so that it can share a transaction."""
    if submission.workflow is not None:
        return False
    last: JobTemplate | None = None
    for job in submission.jobs:
        template = job.template
        if template is not last:  # similar jobs share one
            if not template.plain:
                return False
            last = template
    return True


async def submit(work: Work, submissions: Sequence[Submission]) -> list[Submitted | WindlassError]:
    """Writes a batch of submissions, or raises the conflict of one of them."""
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
    """Returns the answers by identity; repeated submissions are not written again."""
    ids = await _ids_of(work, submissions)
    places: dict[int, Sequence[int]] = {}
    start = 0
    for submission in submissions:
        places[id(submission)] = ids[start : start + len(submission.jobs)]
        start += len(submission.jobs)
    answers = await known_answers(work, submissions, places)
    new = [s for s in submissions if id(s) not in answers]
    if new:
        taken = [job_id for s in new for job_id in places[id(s)]] if answers else ids
        await _submit_plain(work, [job for s in new for job in s.jobs], taken)
    for submission in new:
        mine = tuple(places[id(submission)])
        answers[id(submission)] = Submitted(mine, (True,) * len(mine), at=work.now)
    return answers


async def _ids_of(work: Work, submissions: Sequence[Submission]) -> Sequence[int]:
    """Returns new ids, or the reserved ones; all of these submissions have some, or none has."""
    if submissions[0].ids:
        return [job_id for submission in submissions for job_id in submission.ids]
    return await work.tx.jobs.allocate(sum(len(s.jobs) for s in submissions))


async def _submit_plain(work: Work, jobs: list[ValidatedJob], ids: Sequence[int]) -> None:
    """Writes jobs without references: their rows in one pass, ready at once."""
    shapes = await work.intern(jobs)
    rows, groups = await aside(
        len(jobs), lambda: plain_rows(work.catalog, shapes, jobs, ids, work.now)
    )
    # The store takes a page in one piece, which large jobs make longer.
    for page in pages(rows, 1 + PAGE * len(rows) // rows_of(jobs)):
        await work.tx.flow.enter(page)
    work.move_all(ids, (0,) * len(ids), ((0, QUEUED),))
    for group in groups:
        work.effects.arrive_at(group.shape, group.rank, group.first, group.count)
        work.count_moves(group.shape, None, 0, QUEUED, group.count)


@dataclass(slots=True, eq=False)
class Group:
    """Jobs of one shape and base priority, which share a rank."""

    template: JobTemplate  # of the newest
    shape: int
    base: int
    rank: int
    first: int
    count: int = 0


def plain_rows(
    catalog: Catalog,
    shapes: Mapping[str, int],
    jobs: Sequence[ValidatedJob],
    ids: Sequence[int],
    now: int,
) -> tuple[list[JobColumns], Iterable[Group]]:
    """Returns the rows of jobs without references, and what they have in common."""
    rows: list[JobColumns] = LongList()
    groups: dict[tuple[str, int | None], Group] = {}
    group: Group | None = None
    for job_id, job in zip(ids, jobs, strict=True):
        template = job.template
        if group is None or template is not group.template:
            group = groups.get((template.digest, template.base))
            if group is None:
                group = _group(catalog, template, shapes[template.digest], job_id, now)
                groups[template.digest, template.base] = group
            group.template = template
            shape, place, base = group.shape, group.rank, group.base
            flags, timeout_ms, idle_ms = template.flags, template.timeout_ms, template.idle_ms
        group.count += 1
        rows.append(
            (job_id, shape, None, flags, place, base, 0, now, now, None, timeout_ms, idle_ms, None,
             job.body)
        )  # fmt: skip
    return rows, groups.values()


def _group(catalog: Catalog, template: JobTemplate, shape: int, first: int, now: int) -> Group:
    base = template.base or 0
    priority = level(catalog.weight(template.shape.queue), base, 0)
    return Group(template, shape, base, rank(now, priority, catalog.interval_ms), first)


async def _submit_tied(work: Work, submission: Submission) -> Submitted | WindlassError:
    """Submits jobs with names, keys, dependencies, limits, parents or a workflow."""
    ids = submission.ids or await work.tx.jobs.allocate(len(submission.jobs))
    named, drafts = await aside(len(ids), lambda: _draft_all(submission.jobs, ids))
    if drafts:
        before = await known_answers(work, [submission], {id(submission): ids})
        if id(submission) in before:
            return await _answer_again(work, before[id(submission)], drafts, named.order)
    await reserve(work, drafts, submission.beside)
    await give_way_if_long()
    fresh = [draft for draft in drafts if not draft.known]
    if len(fresh) < len(drafts):
        known = {draft.index: draft.known for draft in drafts if draft.known}
        await note_known(work, submission, known)
    outside = await resolve(work, drafts, fresh, named, submission.origins or {})
    await give_way_if_long()
    uploads = await use_uploads(work, fresh)
    groups = await join_workflows(work, _settled(submission, drafts), [d.job for d in fresh])
    await give_way_if_long()
    _join(fresh, groups, outside)
    await give_way_if_long()
    await write_graph(work, fresh, outside, groups.rows)
    if uploads:
        await work.tx.files.add_artifacts(uploads)
    if len(fresh) == len(drafts):
        return Submitted(tuple(named.ids), (True,) * len(drafts), groups.new, at=work.now)
    found = tuple(draft.known or draft.id for draft in drafts)
    return Submitted(found, tuple(not draft.known for draft in drafts), groups.new, at=work.now)


def _draft_all(jobs: Sequence[ValidatedJob], ids: Sequence[int]) -> tuple[Named, list[GraphJob]]:
    """Returns the ids and names of jobs, and a draft of each."""
    named = find_names([job.spec for job in jobs], ids)
    columns = zip(range(len(ids)), jobs, named.ids, named.after, named.after_any, strict=True)
    return named, LongList(starmap(GraphJob, columns))


def _settled(submission: Submission, drafts: Sequence[GraphJob]) -> Submission:
    """Returns the submission with the ids of jobs in the outputs of its workflow."""
    new = submission.workflow
    if new is None or not new.details.outputs:
        return submission
    outputs = settle_outputs(new.details.outputs, drafts, submission.origins or {})
    details = msgspec.structs.replace(new.details, outputs=outputs)
    return submission._replace(workflow=msgspec.structs.replace(new, details=details))


def _join(fresh: Sequence[GraphJob], groups: Groups, outside: Mapping[int, JobFacts]) -> None:
    """Sets the workflow and base priority of jobs."""
    new = None if groups.new is None else WorkflowId(groups.new)
    ground = 0 if new is None else groups.bases[new]
    for draft in fresh:
        template = draft.job.template
        if template.only_named and template.base is None:  # nothing of its own
            draft.workflow, draft.base = new, ground
            continue
        spec = draft.job.spec
        draft.workflow = WorkflowId(spec.workflow) if new is None and spec.workflow else new
        flow = 0 if draft.workflow is None else groups.bases[draft.workflow]
        parent = None if spec.parent is None else outside[spec.parent]
        effective = None if parent is None else parent.base + parent.adjustment
        draft.base = base_of(spec, template.base, effective, flow)


async def _answer_again(
    work: Work, known: Submitted | WindlassError, drafts: list[GraphJob], order: Sequence[int]
) -> Submitted | WindlassError:
    """Returns the first answer again: ids follow from the order, except for known keys."""
    if not isinstance(known, Submitted):
        return known
    for job_id, index in zip(sorted(known.ids), order, strict=True):
        drafts[index].id = JobId(known.had_keys.get(index, job_id))
    ids = tuple(draft.id for draft in drafts)
    facts = await work.tx.jobs.read(ids[:1])
    workflow = facts[ids[0]].workflow if ids[0] in facts else None
    return Submitted(ids, (False,) * len(ids), workflow)
