"""Changes that span many jobs: cascades, stopping workflows and retrying them.

A cascade carries out what a job's end means to many others, one chunk at a time. Each step is its
own transaction, or part of the command's if the store runs transactions one after another. A crash
between two steps loses nothing: the cascade is a row, and the scheduling loop picks it up again.

One kind stops a workflow: nothing more of it starts, and running jobs are told to stop. It handles
open jobs in ascending order of ids. Waiting jobs are ended in bulk. Dependents inside the workflow
need no update, since all of it ends; only dependents outside do. Another kind retries its failed
jobs. All of it can be repeated as a new workflow.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.job.dependency_graph import ids_in
from windlass.domain.job.job import ALLOW_FAILURE, JobSpec, decode_spec
from windlass.domain.lifecycle.states import ABORTED, CANCELED, SKIPPED, STATE_BY_CODE, State
from windlass.domain.lifecycle.workflow_state import (
    ENDED,
    FAIL_FAST,
    FORGIVEN,
    Details,
    WorkflowState,
    decode_details,
    ended_badly,
    unforgiven,
)
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Cascade, CascadeKind, JobFacts
from windlass.domain.values.errors import Conflict, NotFound, existing
from windlass.domain.values.ids import JobId, WorkflowId
from windlass.domain.values.quantities import counted
from windlass.engine.jobs.cancel import cancel, note_ended
from windlass.engine.jobs.deadlines import without_passed
from windlass.engine.jobs.decide import decide, release_with_new_age
from windlass.engine.jobs.dependents import (
    CHUNK,
    Ended,
    hold_dependents,
    meet,
    newest_of,
    notify_dependents,
)
from windlass.engine.jobs.priority import inherit_chunk
from windlass.engine.jobs.supersede import (
    ChangedArgs,
    retry,
    retry_many,
    revive,
)
from windlass.engine.submit.submission import WorkflowSpec
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.jobs import RetryReply
from windlass.messages.workflows import CanceledWorkflow, RetriedWorkflow
from windlass.store.sql.transaction import ReadTx

FAILURES = (State.FAILED.code, State.REJECTED.code)
PAGE = 1_000  # jobs that a step reads
MAX_JOBS = 300  # jobs that a step supersedes, with those they depend on


async def advance(work: Work, most: int = 1) -> bool:
    """Runs steps of the oldest cascades until they touched `most` jobs; False if none is open.

    More than one step only makes sense if transactions run one after another; otherwise each must
    take its locks in order.
    """
    done = 0
    while done < most:
        cascade = await work.tx.workflows.pull_cascade()
        if cascade is None:
            break
        cursor, touched = await _advance(work, cascade)
        await work.tx.workflows.advance_cascade(cascade.id, cursor)
        if work.cascades:
            await work.tx.workflows.add_cascades(work.cascades)
            work.cascades = []
        done += max(touched, 1)
    return done > 0


async def _advance(work: Work, cascade: Cascade) -> tuple[int | None, int]:
    """Runs one step; returns where the next begins (None: done), and how many jobs it touched."""
    if cascade.kind in (CascadeKind.CANCEL, CascadeKind.STOP):
        return await stop_chunk(work, cascade), CHUNK
    if cascade.kind == CascadeKind.RETRY:
        return await retry_chunk(work, cascade), CHUNK
    if cascade.kind == CascadeKind.INHERIT:
        return await inherit_chunk(work, cascade)
    if cascade.kind == CascadeKind.RELEASE:
        await release_with_new_age(work, cascade.known_job)
        return None, 1
    if cascade.kind == CascadeKind.DECIDE:
        await decide(work, cascade.known_job)
        return None, 1
    chunks = await work.tx.jobs.dependents([cascade.known_job], cascade.cursor)
    edges = chunks.get(cascade.known_job)
    if edges is None:
        return None, 1
    await _step(work, cascade, edges)
    return (cascade.cursor + 1 if len(edges) >= CHUNK else None), len(edges)


async def _step(work: Work, cascade: Cascade, edges: tuple[int, ...]) -> None:
    if cascade.kind == CascadeKind.REVIVE:
        await revive(work, cascade, edges)
        return
    owner = (await work.tx.jobs.read([cascade.known_job]))[cascade.known_job]
    met: dict[int, int] = {}
    if cascade.kind in (CascadeKind.SATISFY, CascadeKind.FAIL):
        satisfied = cascade.kind == CascadeKind.SATISFY and _satisfies(owner)
        for edge in edges:
            if edge & 1 or satisfied:
                met[edge >> 1] = met.get(edge >> 1, 0) + 1
    if cascade.kind == CascadeKind.SATISFY:
        await meet(work, met)
        return
    await _abort(work, owner, [edge >> 1 for edge in edges if not edge & 1], met)


def _satisfies(facts: JobFacts) -> bool:
    return facts.state == State.COMPLETED.code or bool(facts.flags & ALLOW_FAILURE)


async def _abort(work: Work, owner: JobFacts, jobs: list[int], met: dict[int, int]) -> None:
    """Aborts the jobs among these that still wait, and continues with their own dependents.

    Jobs in `met` accept any end. Dependents of a skipped job are skipped, too.
    """
    jobs = sorted(set(jobs))
    await work.tx.jobs.hold(jobs)
    edges = await work.tx.jobs.dependents(jobs, 0)
    await hold_dependents(work, [*jobs, *met], edges)
    reason = f"Dependency {await _named(work, owner.id)} {STATE_BY_CODE[owner.final_state]}"
    to = SKIPPED if owner.final_state == SKIPPED else ABORTED
    ended = await work.tx.flow.end_waiting(jobs, to, work.now, reason, queued=False)
    await note_ended(work, ended, to, reason)
    notified = [Ended(row.job, bool(row.flags & ALLOW_FAILURE), reason) for row in ended]
    await notify_dependents(work, notified, edges)
    if met:
        await meet(work, met)


async def _named(work: Work, job: int) -> str:
    """Returns the id of a job, and its name if it has one: 12 (build)."""
    spec = (await work.tx.jobs.specs([job])).get(job)
    name = None if spec is None else decode_spec(spec).name
    return str(job) if name is None else f"{job} ({name})"


class CascadeRunner:
    """Runs one task at a time. `step` does one step and returns False if there was none."""

    def __init__(self, step: Callable[[], Awaitable[bool]]) -> None:
        self._step = step
        self._more = False
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Runs the cascades that exist or may exist."""
        if self._stopped:
            return
        self._more = True  # also for a task that has just checked for the last time
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def stop(self) -> None:
        """Ends after the step under way; the rest stays in the store for the next engine."""
        self._stopped = True

    async def settled(self) -> None:
        """Waits until every cascade known so far is done, or the step at which it was stopped.

        Raises the error of a failed step.
        """
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        while self._more:
            self._more = False
            while not self._stopped and await self._step():
                pass


class StopReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason of a cascade, as it is stored."""

    reason: str
    actor: str | None = None


_why = msgspec.json.Decoder(StopReason).decode


async def cancel_workflow(
    work: Work, workflow: int, reason: str, actor: str | None
) -> CanceledWorkflow:
    """Makes a workflow `canceling`, and records the cascade that stops all of it."""
    row = existing("workflow", workflow, (await work.tx.workflows.lock([workflow])).get(workflow))
    state = WorkflowState(row.state)
    if state in ENDED or state is WorkflowState.CANCELING:
        return CanceledWorkflow(workflow, state.name.lower(), False)
    work.cancel_workflow(workflow, reason, actor)
    await work.tx.workflows.set_reason(workflow, reason)
    body = msgspec.json.encode(StopReason(reason, actor)).decode()
    work.cascades.append(Cascade.of_workflow(WorkflowId(workflow), CascadeKind.CANCEL, body))
    return CanceledWorkflow(workflow, "canceling", True)


async def stop_chunk(work: Work, cascade: Cascade) -> int | None:
    """Stops the next jobs; returns where the following chunk begins, None at the end."""
    workflow, why = cascade.known_workflow, _why(cascade.reason or "")
    jobs = await work.tx.workflows.open_jobs(workflow, cascade.cursor, CHUNK)
    if jobs:
        await _stop_jobs(work, workflow, jobs, why)
    return jobs[-1] if len(jobs) == CHUNK else None


async def _stop_jobs(work: Work, workflow: int, jobs: Sequence[int], why: StopReason) -> None:
    await work.tx.jobs.hold(jobs)
    edges = await work.tx.jobs.dependents(jobs, 0)
    await hold_dependents(work, jobs, edges)
    outside = await _outside(work, workflow, edges)
    ended = await work.tx.flow.end_waiting(jobs, CANCELED, work.now, why.reason, queued=True)
    await note_ended(work, ended, CANCELED, why.reason, why.actor)
    notified = [
        Ended(row.job, bool(row.flags & ALLOW_FAILURE), why.reason)
        for row in ended
        if row.job in outside
    ]
    await notify_dependents(work, notified, {row.job: edges[row.job] for row in notified})
    gone = {row.job for row in ended}
    if len(gone) < len(jobs):
        await cancel(work, [job for job in jobs if job not in gone], why.reason, why.actor)


async def _outside(work: Work, workflow: int, edges: Mapping[int, Sequence[int]]) -> frozenset[int]:
    """Returns which of the jobs something outside the workflow depends on."""
    found: set[int] = set()
    chunk = 0
    while edges:
        waiting = {edge >> 1 for some in edges.values() for edge in some}
        others = set(await work.tx.workflows.outside(workflow, sorted(waiting)))
        if others:
            found |= {j for j, some in edges.items() if any(e >> 1 in others for e in some)}
        chunk += 1
        more = [job for job, some in edges.items() if len(some) >= CHUNK and job not in found]
        edges = await work.tx.jobs.dependents(more, chunk) if more else {}
    return frozenset(found)


class RetryIntent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of the command: jobs with numbers from `until` on are newer than it."""

    until: int
    actor: str | None = None
    not_before: int | None = None


_intent = msgspec.json.Decoder(RetryIntent).decode


async def retry_failed(
    work: Work, workflow: int, actor: str | None, not_before: int | None = None
) -> RetriedWorkflow:
    """Records the intent to supersede all jobs of a workflow that failed."""
    row = existing("workflow", workflow, (await work.tx.workflows.lock([workflow])).get(workflow))
    if row.state == WorkflowState.CANCELING:
        raise Conflict("workflow_canceling", f"workflow {workflow} is being canceled", 1_000)
    under_way = await work.tx.workflows.cascades_of(workflows=[workflow])
    if any(cascade.kind == CascadeKind.STOP for cascade in under_way):
        raise Conflict("busy", f"workflow {workflow} is being stopped by a failure", 1_000)
    if not unforgiven(row.counts) or under_way:
        return RetriedWorkflow(workflow, False)
    (until,) = await work.tx.jobs.allocate(1)  # higher than the number of any job
    body = msgspec.json.encode(RetryIntent(until, actor, not_before)).decode()
    work.cascades.append(Cascade.of_workflow(WorkflowId(workflow), CascadeKind.RETRY, body))
    message = f"retrying {counted(unforgiven(row.counts), 'failed job')}"
    work.say(EventKind.WORKFLOW, message, actor=actor, data={"workflow": workflow})
    return RetriedWorkflow(workflow, True)


async def retry_one(
    work: Work, job: int, actor: str | None, not_before: int | None = None,
    changed: ChangedArgs | None = None,
) -> RetryReply:  # fmt: skip
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
    details = Details() if about is None else decode_details(about.body)
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
    """Returns all jobs of a workflow, and the specs of the jobs not superseded."""
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
    named = {job for spec in specs.values() for job in ids_in(spec)}
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
