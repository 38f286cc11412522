"""Retry by hand: a new job supersedes an ended one, which stays for inspection.

Dependents then point to the new job. Those that were aborted because of the old one are superseded
too, by a cascade. Queued ones wait again. Running ones continue, and wait only if they are
requeued.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from windlass.domain.job.dependency_graph import ids_in
from windlass.domain.job.job import (
    ALLOW_FAILURE,
    CONDITIONAL,
    LENDS,
    MANUAL,
    QUARANTINED,
    JobSpec,
    decode_spec,
)
from windlass.domain.lifecycle.rank import age_from_ms, level, rank
from windlass.domain.lifecycle.states import (
    BLOCKED,
    COMPLETED,
    QUEUED,
    STATE_BY_CODE,
    SUSPENDED,
    State,
    can_supersede,
)
from windlass.domain.lifecycle.workflow_state import ENDED, FORGIVEN, WorkflowState, ended_badly
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.files import UPLOADED, ArtifactRow
from windlass.domain.rows.records import (
    DECIDES,
    KEPT_WHILE_RUNNING,
    Cascade,
    CascadeKind,
    JobFacts,
    NewJob,
    Ticket,
    Wait,
    WorkflowRow,
)
from windlass.domain.tasks.references import results_in, uploads_in
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, WindlassError
from windlass.domain.values.ids import AttemptNo, JobId
from windlass.domain.values.quantities import format_moment
from windlass.engine.jobs.deadlines import deadlines_of, note_deadlines, without_passed
from windlass.engine.jobs.dependents import CHUNK, hold_back
from windlass.engine.jobs.places import make_ready, plan_for, withdraw
from windlass.engine.jobs.priority import pass_on, refresh
from windlass.engine.jobs.unique_keys import keep_workflow_key, key_holder, pass_key
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.jobs import RetryReply

NOT_STARTED = (State.ABORTED.code, State.SKIPPED.code)  # ended because of how others ended

_encode = msgspec.json.Encoder(order="deterministic").encode


class ChangedArgs(NamedTuple):
    """New arguments for a retried job, and the job's shape with them."""

    args: Any
    shape: Shape


def check_references(old: Any, new: Any) -> None:
    """Refuses arguments that name jobs or uploads which the old ones do not.

    The job would have to wait for them, or has no right to read them.
    """
    jobs = set(results_in(new, "args")) - set(results_in(old, "args"))
    files = set(uploads_in(new)) - set(uploads_in(old))
    if jobs or files:
        named = ", ".join(map(str, sorted(map(str, jobs | files))))
        expected = "without jobs and uploads that the old arguments do not name"
        raise InvalidInput("args", expected, named, "submit a new job for that")


async def retry(
    work: Work, job: int, actor: str | None, not_before: int | None = None,
    changed: ChangedArgs | None = None,
) -> RetryReply:  # fmt: skip
    """Supersedes `job`, or returns the job that already has."""
    (done,) = await retry_many(work, [job], actor, not_before, changed)
    if isinstance(done, WindlassError):
        raise done
    return done


async def retry_many(
    work: Work, jobs: Sequence[int], actor: str | None, not_before: int | None = None,
    changed: ChangedArgs | None = None,
) -> list[RetryReply | WindlassError]:  # fmt: skip
    """Supersedes many jobs, each after its dependencies among them."""
    known = await work.tx.jobs.read(sorted(jobs))
    bodies = await work.tx.jobs.specs(sorted(known))
    specs = {job: decode_spec(body) for job, body in bodies.items()}
    if not_before is not None:
        at = format_moment(not_before)
        specs = {j: msgspec.structs.replace(s, not_before=at) for j, s in specs.items()}
    if changed is not None:
        specs = {j: msgspec.structs.replace(s, args=changed.args) for j, s in specs.items()}
    named = await _newest(work, [ref for spec in specs.values() for ref in ids_in(spec)])
    locked = await work.tx.jobs.lock(sorted({*known, *named.values()}))
    await work.catalog.know(work.tx, (locked[job].shape for job in known))
    if changed is not None and any(
        work.catalog.shapes[locked[job].shape] != changed.shape for job in known
    ):
        expected = "arguments with the same requirements for workers"
        raise InvalidInput("args", expected, "others", "submit a new job for that")
    standing = await _Obstacles.read(work, [locked[job] for job in sorted(known)])
    successors = await _Successors.number(
        work, [job for job in jobs if job in locked and _may_retry(standing, locked[job])], actor
    )
    answers: list[RetryReply | WindlassError] = []
    for job in jobs:
        if job not in locked:
            answers.append(NotFound("job", job))
            continue
        old, spec = locked[job], specs[job]
        its = {ref: _follow(named[ref], locked) for ref in ids_in(spec)}
        refusal = standing.refusal(old) or _standing_cause_of(old, spec, its, locked)
        if refusal is None and not old.superseded_by:
            refusal = await standing.key_refusal(work, old, spec)
        if old.superseded_by:
            answers.append(RetryReply((await _newest(work, [job]))[job], False))
        elif refusal is not None:
            answers.append(refusal)
        else:
            new = await successors.add(old, spec, its, locked)
            locked[job] = old._replace(superseded_by=new)
            locked[new] = old._replace(id=new, state=None, supersedes=JobId(job))
            answers.append(RetryReply(new, True, work.now))
    await successors.write()
    return answers


def _may_retry(standing: "_Obstacles", old: JobFacts) -> bool:
    return not old.superseded_by and standing.refusal(old) is None


def _follow(job: int, locked: Mapping[int, JobFacts]) -> int:
    """Returns the newest of a chain whose last links were just made."""
    while job in locked:
        newer = locked[job].superseded_by
        if newer is None or newer not in locked:
            break
        job = newer
    return job


class _Obstacles:
    """What prevents superseding jobs, besides their dependencies."""

    def __init__(
        self,
        busy: frozenset[int],
        stopped: frozenset[int],
        canceling: frozenset[int],
        ended: Mapping[int, WorkflowRow],
    ) -> None:
        self._busy = busy
        self._stopped = stopped
        self._canceling = canceling
        self._ended = dict(ended)  # workflows that would be reopened

    @classmethod
    async def read(cls, work: Work, jobs: Sequence[JobFacts]) -> Self:
        """Reads open cascades and, under their locks, the workflows."""
        await work.slots.hold({fact.limit for fact in jobs if fact.limit})
        workflows = sorted({fact.workflow for fact in jobs if fact.workflow is not None})
        rows = await work.tx.workflows.lock(workflows) if workflows else {}
        canceling = {n for n, row in rows.items() if row.state == WorkflowState.CANCELING}
        owners = {owner for fact in jobs for owner in (fact.id, fact.supersedes) if owner}
        intents = await work.tx.workflows.cascades_of(sorted(owners), workflows)
        others = [intent for intent in intents if intent.kind != CascadeKind.RETRY]
        busy = frozenset(i.job for i in others if i.job is not None)
        stopped = frozenset(i.workflow for i in others if i.workflow is not None)
        ended = {n: row for n, row in rows.items() if WorkflowState(row.state) in ENDED}
        return cls(busy, stopped, frozenset(canceling), ended)

    async def key_refusal(self, work: Work, old: JobFacts, spec: JobSpec) -> Conflict | None:
        """Returns a conflict if another job or workflow has this one's key."""
        row = None if old.workflow is None else self._ended.get(old.workflow)
        if row is not None:
            try:
                await keep_workflow_key(work, row)
            except Conflict as taken:
                return taken
            del self._ended[row.id]
        return await key_holder(work, old, spec)

    def is_canceling(self, fact: JobFacts) -> bool:
        """Returns True if nothing of the job's workflow may start any more."""
        return fact.workflow in self._canceling

    def refusal(self, old: JobFacts) -> Conflict | None:
        """Returns why this job cannot be superseded now."""
        if old.superseded_by:
            return None
        state = None if old.state is None else STATE_BY_CODE[old.state]
        if state is None or not can_supersede(state):
            shown = "still open" if state is None else str(state)
            message = f"job {old.id} has not failed: it is {shown}"
            return Conflict("not_retryable", message)
        if self.is_canceling(old):
            return Conflict("workflow_canceling", f"workflow {old.workflow} is being canceled")
        # Its dependents must have been aborted, and those of its predecessor moved to it.
        if self._busy & {old.id, old.supersedes} or old.workflow in self._stopped:
            return Conflict("busy", f"dependents of job {old.id} are still being updated", 1_000)
        return None


async def _newest(work: Work, ids: list[int]) -> dict[int, int]:
    """Returns the newest successor of each named job."""
    newest = {job: job for job in ids}
    while newest:
        facts = await work.tx.jobs.read(sorted(set(newest.values())))
        newer = {job: f.superseded_by for job, f in facts.items() if f.superseded_by}
        if not newer:
            break
        newest = {job: newer.get(last, last) for job, last in newest.items()}
    return newest


def _standing_cause_of(
    old: JobFacts, spec: JobSpec, named: Mapping[int, int], locked: Mapping[int, JobFacts]
) -> Conflict | None:
    """Returns a conflict if a failed dependency would abort the new job at once."""
    cause = _standing_cause(spec, named, locked)
    if cause is None:
        return None
    return Conflict(
        "cause_stands",
        f"job {old.id} depends on job {cause.id}, which is {STATE_BY_CODE[cause.final_state]}: "
        "retry that job first",
    )


def _standing_cause(
    spec: JobSpec, named: Mapping[int, int], locked: Mapping[int, JobFacts]
) -> JobFacts | None:
    for ref in spec.after:
        other = locked.get(named[ref]) if isinstance(ref, int) else None
        if other is None or other.superseded_by or other.flags & ALLOW_FAILURE:
            continue
        if other.state is not None and other.state != COMPLETED:
            return other
    return None


class _Successors:
    """New jobs that take the places of old ones, written together."""

    def __init__(self, work: Work, numbers: Mapping[int, int], actor: str | None) -> None:
        self._work = work
        self._numbers = numbers
        self._actor = actor
        self._rows: list[NewJob] = []
        self._superseded: list[tuple[int, int]] = []
        self._edges: dict[int, list[int]] = {}
        self._uploads: list[ArtifactRow] = []
        self._deadlines: list[tuple[int, int]] = []
        self._lending: list[int] = []
        self._waits: list[Wait] = []
        self._deciding: list[Wait] = []  # without conditions that are still unmet
        self._due: list[tuple[int, Ticket]] = []
        self._ready: list[Ticket] = []

    @classmethod
    async def number(cls, work: Work, olds: Sequence[int], actor: str | None) -> Self:
        """Gives the successor of each of these jobs its number."""
        numbers = await work.tx.jobs.allocate(len(olds)) if olds else ()
        return cls(work, dict(zip(olds, numbers, strict=True)), actor)

    async def add(
        self, old: JobFacts, spec: JobSpec, named: Mapping[int, int], locked: Mapping[int, JobFacts]
    ) -> JobId:
        """Plans the new job with its edges and place, and gives it the key of the old one."""
        work, new = self._work, JobId(self._numbers[old.id])
        await pass_key(work, old, spec, new)
        spec = without_passed(spec, work.now)
        after = sorted({named[ref] for ref in spec.after if isinstance(ref, int)})
        after_any = sorted({named[ref] for ref in spec.after_any if isinstance(ref, int)})
        unmet = _unmet(locked, after, after_any) + (1 if old.flags & MANUAL else 0)
        weight = work.catalog.weight(work.catalog.queue_of(old.shape))
        age_from = age_from_ms(work.now, spec.not_before_ms, None)
        place = rank(age_from, level(weight, old.base, old.adjustment), work.catalog.interval_ms)
        spec = msgspec.structs.replace(spec, after=tuple(after), after_any=tuple(after_any))
        body = _encode(spec)
        flags = old.flags & ~(QUARANTINED | LENDS) | (LENDS if unmet else 0)
        row = NewJob(
            new, old.shape, old.workflow, flags, place, old.base, old.adjustment,
            age_from, work.now, old.limit, old.timeout_ms, old.idle_ms, old.id, body,
        )  # fmt: skip
        self._rows.append(row)
        self._superseded.append((old.id, new))
        self._wait_for(new, locked, after, after_any)
        self._uploads += await _uploads_for(work, old.id, new, spec)
        self._deadlines += deadlines_of(spec, new)
        if unmet:
            self._lending.append(new)
        work.say(
            EventKind.SUPERSEDE, f"Job {old.id} superseded by job {new}", job=old.id,
            actor=self._actor, data={"by": new},
        )  # fmt: skip
        self._place(old, row, spec, unmet)
        _reopen_workflow(work, old)
        return new

    def _wait_for(
        self, new: JobId, states: Mapping[int, JobFacts], after: list[int], after_any: list[int]
    ) -> None:
        """Makes the new job wait for what the old one waited for."""
        for jobs, any_end in ((after, 0), (after_any, 1)):
            for job in jobs:
                if job in states and not states[job].state:
                    self._edges.setdefault(job, []).append(new * 2 + any_end)

    def _place(self, old: JobFacts, row: NewJob, spec: JobSpec, unmet: int) -> None:
        """Decides where the new job waits, or that it is ready."""
        work = self._work
        ticket = Ticket(row.shape, row.rank, row.id, AttemptNo(0), row.workflow, row.limit, None)
        data = {"supersedes": old.id, "base": old.base, "adjustment": old.adjustment}
        blocked = unmet or old.flags & CONDITIONAL
        work.move(row.id, row.shape, row.workflow, AttemptNo(0), 0, BLOCKED if blocked else QUEUED,
                  "Retried by hand", actor=self._actor, data=data)  # fmt: skip
        not_before = spec.not_before_ms
        if blocked:
            manual = DECIDES if old.flags & CONDITIONAL else 1 if old.flags & MANUAL else 0
            wait = Wait(row.id, unmet, manual, not_before, row.age_from, ticket)
            (self._waits if unmet else self._deciding).append(wait)
        elif not_before is not None and not_before > work.now:
            self._due.append((not_before, ticket))
        else:
            self._ready.append(ticket)

    async def write(self) -> None:
        """Writes all new jobs, and what moves from the old ones to them."""
        if not self._rows:
            return
        work = self._work
        await work.tx.jobs.insert(self._rows)
        await work.tx.jobs.set_superseded(sorted(self._superseded))
        if self._edges:
            await work.tx.jobs.add_dependents(self._edges)
        if self._uploads:
            await work.tx.files.add_artifacts(self._uploads)
        pass_on(work, self._lending)
        successors = dict(self._superseded)
        for old, edges in (await work.tx.jobs.dependents(sorted(successors), 0)).items():
            # Dependents that were superseded as well wait for the new job already.
            if len(edges) >= CHUNK or any(edge >> 1 not in successors for edge in edges):
                revive_by = Cascade.of_job(JobId(old), CascadeKind.REVIVE, str(successors[old]))
                work.cascades.append(revive_by)
        await note_deadlines(work, self._deadlines)
        if self._waits:
            await work.tx.places.add_waits(self._waits)
        for wait in self._deciding:
            await hold_back(work, wait)
        for at, ticket in self._due:
            await plan_for(work, at, QUEUED, ticket)
        await make_ready(work, self._ready)


def _unmet(locked: Mapping[int, JobFacts], after: list[int], after_any: list[int]) -> int:
    unmet = 0
    for job in after:
        fact = locked.get(job)
        if fact is not None and not (
            fact.state == COMPLETED or (not fact.is_open and fact.flags & ALLOW_FAILURE)
        ):
            unmet += 1
    return unmet + sum(1 for job in after_any if job in locked and not locked[job].state)


async def _uploads_for(work: Work, old: int, new: JobId, spec: JobSpec) -> list[ArtifactRow]:
    """Returns the uploaded files of the old job as the new one's."""
    if not any(uploads_in(spec.args)):
        return []
    rows = (await work.tx.files.artifacts([old])).get(old, [])
    return [row._replace(job=new) for row in rows if row.attempt == UPLOADED]


def _reopen_workflow(work: Work, old: JobFacts) -> None:
    """Stops counting the old job; reopens an ended workflow."""
    if old.workflow is None:
        return
    work.count_in_workflow(old.workflow, old.final_state, -1)
    if old.flags & ALLOW_FAILURE and ended_badly(old.final_state):
        work.count_in_workflow(old.workflow, FORGIVEN, -1)
    work.reopen_workflow(old.workflow)


async def revive(work: Work, cascade: Cascade, edges: tuple[int, ...]) -> None:
    """Moves one chunk of dependents to the new job, so that they wait for it.

    The new job may have ended by now. It has updated the dependents it had; we settle the others
    here. Conditions that the old job's end had met stay met.
    """
    old, new = cascade.known_job, int(cascade.reason or 0)
    dependents = {edge >> 1: edge & 1 for edge in edges}
    specs = await _aborted_specs(work, list(dependents))
    named = await _newest(work, [ref for spec in specs.values() for ref in ids_in(spec)])
    locked = await work.tx.jobs.lock(sorted({*dependents, *named.values(), old, new}))
    await work.catalog.know(work.tx, {fact.shape for fact in locked.values()})
    forgiven = bool(locked[old].flags & ALLOW_FAILURE)
    met = [job for job, any_end in dependents.items() if any_end or forgiven]
    if not locked[new].state:
        await _block_again(work, [locked[job] for job in met if not locked[job].state])
    standing = await _Obstacles.read(work, [locked[job] for job in sorted(specs)])
    successors = await _Successors.number(
        work, [job for job in sorted(specs) if _may_revive(locked[job])], None
    )
    for job in sorted(dependents):
        fact = locked[job]
        if job not in specs or not _may_revive(fact):
            continue
        stands = standing.is_canceling(fact) or _standing_cause(specs[job], named, locked)
        if not stands and await standing.key_refusal(work, fact, specs[job]) is None:
            await successors.add(fact, specs[job], named, locked)
            dependents.pop(job)
    await successors.write()
    still = [job * 2 + kind for job, kind in dependents.items() if _may_wait(locked[job])]
    if still:
        await work.tx.jobs.add_dependents({new: still})
    if await refresh(work, [new]):
        pass_on(work, [new])


def _may_wait(facts: JobFacts) -> bool:
    """Returns True if the end of a dependency can still affect this job."""
    return facts.is_open or _may_revive(facts)


def _may_revive(facts: JobFacts) -> bool:
    return facts.state in NOT_STARTED and not facts.superseded_by


async def _aborted_specs(work: Work, jobs: list[int]) -> dict[int, JobSpec]:
    facts = await work.tx.jobs.read(sorted(jobs))
    aborted = [fact.id for fact in facts.values() if _may_revive(fact)]
    return {job: decode_spec(body) for job, body in (await work.tx.jobs.specs(aborted)).items()}


async def _block_again(work: Work, facts: list[JobFacts]) -> None:
    """Blocks queued dependents again; running ones keep a wait for when they are requeued."""
    found = await withdraw(work, facts)
    for gone in found.withdrawn:
        fact = gone.facts
        if gone.wait is not None:
            await work.tx.places.add_waits([gone.wait._replace(unmet=gone.wait.unmet + 1)])
            continue
        work.move(
            fact.id, fact.shape, fact.workflow, gone.ticket.attempt, gone.state, BLOCKED,
            "A dependency was retried",
        )  # fmt: skip
        manual = DECIDES if fact.flags & CONDITIONAL else 0
        # A suspended one is queued afterwards: its function begins its waits again.
        not_before = None if gone.state == SUSPENDED else gone.due_at
        wait = Wait(fact.id, 1, manual, not_before, fact.age_from, gone.ticket)
        await work.tx.places.add_waits([wait])
        if gone.was_ready and fact.limit:
            work.slots.refill(fact.limit)
    for fact, lease in found.leased:
        ticket = Ticket(
            fact.shape, fact.rank, fact.id, lease.attempt, fact.workflow, fact.limit, fact.excluded
        )
        wait = Wait(fact.id, 1, KEPT_WHILE_RUNNING, 0, fact.age_from, ticket)
        await work.tx.places.add_waits([wait])
