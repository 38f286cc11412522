"""Retries a workflow: its failed jobs, or all of it as a new workflow."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.job.job import ALLOW_FAILURE, JobSpec, decode_spec
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import (
    ENDED,
    FAIL_FAST,
    FORGIVEN,
    Details,
    WorkflowState,
    ended_badly,
    unforgiven,
)
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Cascade, CascadeKind, JobFacts
from windlass.domain.values.errors import Conflict, NotFound
from windlass.domain.values.ids import JobId, WorkflowId
from windlass.domain.values.quantities import counted
from windlass.engine.jobs.deadlines import without_passed
from windlass.engine.jobs.supersede import ChangedArgs, Superseded, newest_of, retry, retry_many
from windlass.engine.submit.submission import WorkflowSpec
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

FAILURES = (State.FAILED.code, State.REJECTED.code)

PAGE = 1_000  # jobs that a step reads
MAX_JOBS = 300  # jobs that a step supersedes, with those they depend on

_details = msgspec.json.Decoder(Details).decode


class Retried(NamedTuple):
    """The workflow that runs now, and whether this call started it."""

    workflow: int
    applied: bool


class RetryIntent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of the command: jobs with numbers from `until` on are newer than it."""

    until: int
    actor: str | None = None
    not_before: int | None = None


_intent = msgspec.json.Decoder(RetryIntent).decode


async def retry_failed(
    work: Work, workflow: int, actor: str | None, not_before: int | None = None
) -> Retried:
    """Records the intent to supersede all jobs of a workflow that failed."""
    row = (await work.tx.workflows.lock([workflow])).get(workflow)
    if row is None:
        raise NotFound("workflow", workflow)
    if row.state == WorkflowState.CANCELING:
        raise Conflict("workflow_canceling", f"workflow {workflow} is being canceled", 1_000)
    under_way = await work.tx.workflows.cascades_of(workflows=[workflow])
    if any(cascade.kind == CascadeKind.STOP for cascade in under_way):
        raise Conflict("busy", f"workflow {workflow} is being stopped by a failure", 1_000)
    if not unforgiven(row.counts) or under_way:
        return Retried(workflow, False)
    (until,) = await work.tx.jobs.allocate(1)  # higher than the number of any job
    body = msgspec.json.encode(RetryIntent(until, actor, not_before)).decode()
    work.cascades.append(Cascade.of_workflow(WorkflowId(workflow), CascadeKind.RETRY, body))
    message = f"retrying {counted(unforgiven(row.counts), 'failed job')}"
    work.say(EventKind.WORKFLOW, message, actor=actor, data={"workflow": workflow})
    return Retried(workflow, True)


async def retry_one(
    work: Work, job: int, actor: str | None, not_before: int | None = None,
    changed: ChangedArgs | None = None,
) -> Superseded:  # fmt: skip
    """Supersedes one job; in a `fail_fast` workflow also what its failure has stopped."""
    old = (await work.tx.jobs.read([job])).get(job)
    done = await retry(work, job, actor, not_before, changed)
    if done.applied and old is not None and old.workflow is not None:
        row = (await work.tx.workflows.lock([old.workflow]))[old.workflow]
        if row.flags & FAIL_FAST and _stopped_by(old, row.counts):
            await retry_failed(work, old.workflow, actor, not_before)
    return done


def _stopped_by(old: JobFacts, counts: Sequence[int]) -> bool:
    """Returns True if other jobs ended badly only because `old`, which is counted, failed."""
    failures = sum(counts[code] - (code == old.state) for code in FAILURES)
    own = 0 if old.flags & ALLOW_FAILURE else 1
    return unforgiven(counts) > own and failures <= counts[FORGIVEN]


async def retry_chunk(work: Work, cascade: Cascade) -> int | None:
    """Supersedes the next failed jobs; returns where the next step begins, None at the end."""
    workflow, intent = cascade.known_workflow, _intent(cascade.reason or "")
    page = await work.tx.workflows.jobs_of(workflow, cascade.cursor, PAGE)
    bad = [fact.id for fact in page if _failed(fact, workflow, intent.until)]
    jobs = bad[:MAX_JOBS]
    if jobs:
        ordered = await _causes_first(work, jobs, workflow, intent.until)
        for answer in await retry_many(work, ordered, intent.actor, intent.not_before):
            if isinstance(answer, Conflict) and answer.code == "busy":
                return cascade.cursor  # another server is still passing on a failure
            if isinstance(answer, Conflict) and answer.code == "workflow_canceling":
                return None
    if len(bad) > MAX_JOBS:
        return jobs[-1]
    return page[-1].id if len(page) == PAGE else None


def _failed(fact: JobFacts, workflow: int, until: int) -> bool:
    """Returns True if a job of the workflow counts as failed and is older than the command."""
    failed = not fact.is_open and ended_badly(fact.final_state)
    mine = fact.workflow == workflow and fact.id < until
    return failed and mine and not fact.superseded_by and not fact.flags & ALLOW_FAILURE


async def _causes_first(work: Work, jobs: Sequence[int], workflow: int, until: int) -> list[int]:
    """Returns these jobs and the failed jobs they depend on, causes first."""
    needs: dict[int, list[int]] = {}
    left = list(jobs)
    while left:
        specs = {job: decode_spec(body) for job, body in (await work.tx.jobs.specs(left)).items()}
        named = {r for spec in specs.values() for r in spec.after if isinstance(r, int)}
        newest = await newest_of(work.tx, named)
        left = []
        for job, spec in specs.items():
            causes = [newest[r] for r in spec.after if isinstance(r, int) and r in newest]
            needs[job] = [fact.id for fact in causes if _failed(fact, workflow, until)]
            left += needs[job]
        left = sorted({job for job in left if job not in needs})
    return in_order(needs)


def in_order(needs: Mapping[int, Sequence[int]]) -> list[int]:
    """Returns the keys, each after those it needs; otherwise in ascending order."""
    ordered: dict[int, None] = {}
    for first in sorted(needs):
        path = [first]
        while path:
            missing = [n for n in needs[path[-1]] if n in needs and n not in ordered]
            if missing:
                path.append(missing[0])
            else:
                ordered[path.pop()] = None
    return list(ordered)


class Repetition(NamedTuple):
    """A workflow to submit again; `origins` says which of its jobs an old id means."""

    workflow: WorkflowSpec
    jobs: list[JobSpec]
    origins: dict[int, int]


async def plan_repetition(tx: ReadTx, workflow: int, actor: str | None) -> Repetition:
    """Returns the same jobs with the same dependencies, as they were submitted."""
    row = (await tx.workflows.read([workflow])).get(workflow)
    about = (await tx.workflows.about([workflow])).get(workflow)
    if row is None:
        raise NotFound("workflow", workflow)
    if WorkflowState(row.state) not in ENDED:
        raise Conflict("workflow_open", f"workflow {workflow} has not ended: cancel it first")
    facts, specs = await _all_jobs(tx, workflow)
    facts = _without_children(facts, specs)
    specs = {fact.id: specs[fact.id] for fact in facts if fact.id in specs}
    successor = {fact.id: fact.superseded_by for fact in facts if fact.superseded_by}
    newest = {fact.id: _last(fact.id, successor) for fact in facts}
    needs = {
        job: [newest[JobId(ref)] for ref in (*spec.after, *spec.after_any) if ref in newest]
        for job, spec in specs.items()
    }
    order = in_order(needs)
    place = {job: index for index, job in enumerate(order)}
    bases = {fact.id: fact.base for fact in facts}
    gone = await _gone(tx, specs, newest)
    details = Details() if about is None else _details(about.body)
    spec = WorkflowSpec(
        name=row.name,
        namespace=row.namespace,
        priority=0 if about is None else about.base,
        key=None if about is None else about.key,
        fail_fast=bool(row.flags & FAIL_FAST),
        details=msgspec.structs.replace(details, supersedes=workflow, submitted_by=actor),
    )
    again = {job: without_passed(spec, tx.now) for job, spec in specs.items()}
    jobs = [_anew(again[job], bases[JobId(job)], actor, gone) for job in order]
    return Repetition(spec, jobs, {job: place[last] for job, last in newest.items()})


async def _all_jobs(tx: ReadTx, workflow: int) -> tuple[list[JobFacts], dict[int, JobSpec]]:
    """Returns all jobs of a workflow, and the specs of those that were not superseded."""
    facts: list[JobFacts] = []
    while page := await tx.workflows.jobs_of(workflow, facts[-1].id if facts else 0, PAGE):
        facts += page
    newest = [fact.id for fact in facts if not fact.superseded_by]
    return facts, {job: decode_spec(body) for job, body in (await tx.jobs.specs(newest)).items()}


def _without_children(facts: Sequence[JobFacts], specs: Mapping[int, JobSpec]) -> list[JobFacts]:
    """Leaves out jobs that others of the workflow have added: they will add them again."""
    mine = {fact.id for fact in facts}
    added = {
        job
        for job, spec in specs.items()
        if spec.parent in mine and spec.submitted_by == f"job {spec.parent}"
    }
    before = {fact.id: fact.supersedes for fact in facts if fact.supersedes}
    for job in list(added):
        while job in before:
            job = before[JobId(job)]
            added.add(job)
    return [fact for fact in facts if fact.id not in added]


def _last(job: JobId, successor: Mapping[JobId, JobId]) -> JobId:
    while job in successor:
        job = successor[job]
    return job


async def _gone(
    tx: ReadTx, specs: Mapping[int, JobSpec], inside: Mapping[JobId, JobId]
) -> frozenset[int]:
    """Returns the outside jobs that it names and that retention has removed."""
    named = {r for s in specs.values() for r in (*s.after, *s.after_any) if isinstance(r, int)}
    outside = sorted(named - set(inside))
    known = await tx.jobs.read(outside) if outside else {}
    return frozenset(job for job in outside if job not in known)


def _anew(spec: JobSpec, base: int, actor: str | None, gone: frozenset[int]) -> JobSpec:
    """Returns a job to be submitted again, without its key, parent and workflow."""
    return msgspec.structs.replace(
        spec,
        key=None,
        parent=None,
        workflow=None,
        priority=base,
        submitted_by=actor or spec.submitted_by,
        after=tuple(ref for ref in spec.after if ref not in gone),
        after_any=tuple(ref for ref in spec.after_any if ref not in gone),
    )
