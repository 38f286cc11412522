"""Retry by hand: a new job takes an ended one's place; the old one stays for inspection.

Dependents point to the new job from then on. Those that were aborted because of the old
one are superseded along with it, by a cascade; those that were queued wait again; those
that run go on, and wait only if they come back.
"""

from typing import NamedTuple

import msgspec

from windlass.domain.errors import Conflict, NotFound
from windlass.domain.events import EventKind
from windlass.domain.job import ALLOW_FAILURE, MANUAL, QUARANTINED, JobSpec
from windlass.domain.rank import age_from_ms, level, rank
from windlass.domain.records import Cascade, JobFacts, NewJob, Ticket, Wait
from windlass.domain.states import STATE_BY_CODE, State, can_supersede
from windlass.domain.workflow import FORGIVEN
from windlass.engine.dependents import KEPT_WHILE_RUNNING, CascadeKind
from windlass.engine.enqueue import make_ready, plan_for
from windlass.engine.locate import withdraw
from windlass.engine.work import Work

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
ABORTED = State.ABORTED.code
COMPLETED = State.COMPLETED.code

_decode = msgspec.json.Decoder(JobSpec).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


class Superseded(NamedTuple):
    """The job that took the place, and whether this call made it."""

    job: int
    applied: bool


async def retry(work: Work, job: int, actor: str | None) -> Superseded:
    """Supersede `job`, or answer with the job that already has."""
    await _read_one(work, job)
    spec = _decode((await work.tx.jobs.specs([job]))[job])
    named = await _newest(work, _ids(spec))
    locked = await work.tx.jobs.lock(sorted({job, *named.values()}))
    old = locked[job]
    await work.catalog.know(work.tx, [old.shape])
    if old.superseded_by:
        return Superseded((await _newest(work, [job]))[job], False)
    state = STATE_BY_CODE[old.state]
    if state is None or not can_supersede(state):
        shown = "still open" if state is None else str(state)
        raise Conflict("not_retryable", f"expected job {job} to have failed, it is {shown}")
    # Its dependents must have been aborted, and those of its predecessor handed on to it.
    if await work.tx.workflows.cascades_of([job, old.supersedes] if old.supersedes else [job]):
        raise Conflict("busy", f"job {job} is still busy with its dependents", 1_000)
    _refuse_standing_cause(old, spec, named, locked)
    return Superseded(await _replace(work, old, spec, named, locked, actor), True)


async def _read_one(work: Work, job: int) -> JobFacts:
    facts = (await work.tx.jobs.read([job])).get(job)
    if facts is None:
        raise NotFound("job", job)
    return facts


def _ids(spec: JobSpec) -> list[int]:
    return [ref for ref in (*spec.after, *spec.after_any) if isinstance(ref, int)]


async def _newest(work: Work, ids: list[int]) -> dict[int, int]:
    """For each job that is named, the newest of its chain of successors."""
    newest = {job: job for job in ids}
    while newest:
        facts = await work.tx.jobs.read(sorted(set(newest.values())))
        newer = {job: f.superseded_by for job, f in facts.items() if f.superseded_by}
        if not newer:
            break
        newest = {job: newer.get(last, last) for job, last in newest.items()}
    return newest


def _refuse_standing_cause(
    old: JobFacts, spec: JobSpec, named: dict[int, int], locked: dict[int, JobFacts]
) -> None:
    """Behind a failure that still stands a new job would only be aborted, whatever ended it."""
    cause = _standing_cause(spec, named, locked)
    if cause is not None:
        raise Conflict(
            "cause_stands",
            f"job {old.id} depends on job {cause.id}, which is {STATE_BY_CODE[cause.state]}: "
            "retry that one",
        )


def _standing_cause(
    spec: JobSpec, named: dict[int, int], locked: dict[int, JobFacts]
) -> JobFacts | None:
    for ref in spec.after:
        other = locked.get(named[ref]) if isinstance(ref, int) else None
        if other is None or other.superseded_by or other.flags & ALLOW_FAILURE:
            continue
        if other.state and other.state != COMPLETED:
            return other
    return None


async def _replace(
    work: Work, old: JobFacts, spec: JobSpec, named: dict[int, int],
    locked: dict[int, JobFacts], actor: str | None,
) -> int:  # fmt: skip
    """Write the new job, move edges and key, and put it in its place."""
    (new,) = await work.tx.jobs.allocate(1)
    after = sorted({named[ref] for ref in spec.after if isinstance(ref, int)})
    after_any = sorted({named[ref] for ref in spec.after_any if isinstance(ref, int)})
    unmet = _unmet(locked, after, after_any) + (1 if old.flags & MANUAL else 0)
    weight = work.catalog.weight(work.catalog.queue_of(old.shape))
    age_from = age_from_ms(work.now, spec.not_before, None)
    place = rank(age_from, level(weight, old.base, old.adjustment), work.catalog.interval_ms)
    body = _encode(msgspec.structs.replace(spec, after=tuple(after), after_any=tuple(after_any)))
    row = NewJob(
        new, old.shape, old.workflow, old.flags & ~QUARANTINED, place, old.base, old.adjustment,
        age_from, work.now, old.limit, old.timeout_ms, old.idle_ms, old.id, body,
    )  # fmt: skip
    await work.tx.jobs.insert([row])
    await work.tx.jobs.set_superseded(old.id, new)
    await _add_edges(work, new, locked, after, after_any)
    if await work.tx.jobs.dependents([old.id], 0):
        work.cascades.append(Cascade(0, old.id, CascadeKind.REVIVE, 0, str(new)))
    if spec.key is not None:
        await work.tx.jobs.point_key(spec.namespace, spec.key, new)
    work.say(
        EventKind.SUPERSEDE, f"Job {old.id} superseded by job {new}", job=old.id, actor=actor,
        data={"by": new},
    )  # fmt: skip
    await _put(work, old, row, spec, unmet, actor)
    _reopen_workflow(work, old)
    return new


async def _put(
    work: Work, old: JobFacts, row: NewJob, spec: JobSpec, unmet: int, actor: str | None
) -> None:
    """Put the new job where it waits or is ready."""
    ticket = Ticket(row.shape, row.rank, row.id, 0, row.workflow, row.limit, None)
    data = {"supersedes": old.id, "base": old.base, "adjustment": old.adjustment}
    work.move(row.id, row.shape, row.workflow, 0, 0, BLOCKED if unmet else QUEUED,
              "Retried by hand", actor=actor, data=data)  # fmt: skip
    not_before = spec.not_before or 0
    if unmet:
        manual = 1 if old.flags & MANUAL else 0
        wait = Wait(row.id, unmet, manual, not_before, row.age_from, ticket)
        await work.tx.places.add_waits([wait])
    elif not_before > work.now:
        await plan_for(work, not_before, QUEUED, ticket)
    else:
        await make_ready(work, [ticket])


def _unmet(locked: dict[int, JobFacts], after: list[int], after_any: list[int]) -> int:
    unmet = 0
    for job in after:
        fact = locked.get(job)
        if fact is not None and not (
            fact.state == COMPLETED or (fact.state and fact.flags & ALLOW_FAILURE)
        ):
            unmet += 1
    return unmet + sum(1 for job in after_any if job in locked and not locked[job].state)


async def _add_edges(
    work: Work, new: int, states: dict[int, JobFacts], after: list[int], after_any: list[int]
) -> None:
    """The new job waits for what the old one waited for."""
    edges: dict[int, list[int]] = {}
    for job in after:
        if job in states and not states[job].state:
            edges.setdefault(job, []).append(new * 2)
    for job in after_any:
        if job in states and not states[job].state:
            edges.setdefault(job, []).append(new * 2 + 1)
    if edges:
        await work.tx.jobs.add_dependents(edges)


def _reopen_workflow(work: Work, old: JobFacts) -> None:
    """The old job does not count any more; an ended workflow opens again."""
    if not old.workflow:
        return
    work.count_in_workflow(old.workflow, old.state, -1)
    if old.flags & ALLOW_FAILURE:
        work.count_in_workflow(old.workflow, FORGIVEN, -1)
    work.reopen_workflow(old.workflow)


async def revive(work: Work, cascade: Cascade, edges: tuple[int, ...]) -> None:
    """Hand one chunk of dependents on to the new job, and let them wait for it.

    The new job may have ended by now. It told those that had been handed on; the others
    are settled here: what the old job's end had met stays met.
    """
    old, new = cascade.job, int(cascade.reason or 0)
    dependents = {edge >> 1: edge & 1 for edge in edges}
    specs = await _aborted_specs(work, list(dependents))
    named = await _newest(work, [ref for spec in specs.values() for ref in _ids(spec)])
    locked = await work.tx.jobs.lock(sorted({*dependents, *named.values(), old, new}))
    await work.catalog.know(work.tx, {fact.shape for fact in locked.values()})
    forgiven = bool(locked[old].flags & ALLOW_FAILURE)
    met = [job for job, any_end in dependents.items() if any_end or forgiven]
    if not locked[new].state:
        await _block_again(work, [locked[job] for job in met if not locked[job].state])
    for job in sorted(dependents):
        fact = locked[job]
        if fact.state != ABORTED or fact.superseded_by or job not in specs:
            continue
        if _standing_cause(specs[job], named, locked) is None:
            await _replace(work, fact, specs[job], named, locked, None)
            dependents.pop(job)
    still = [job * 2 + kind for job, kind in dependents.items() if _may_wait(locked[job])]
    if still:
        await work.tx.jobs.add_dependents({new: still})


def _may_wait(facts: JobFacts) -> bool:
    """Whether the end of a dependency can still mean something to this job."""
    return not facts.state or (facts.state == ABORTED and not facts.superseded_by)


async def _aborted_specs(work: Work, jobs: list[int]) -> dict[int, JobSpec]:
    facts = await work.tx.jobs.read(sorted(jobs))
    aborted = [f.id for f in facts.values() if f.state == ABORTED and not f.superseded_by]
    return {job: _decode(body) for job, body in (await work.tx.jobs.specs(aborted)).items()}


async def _block_again(work: Work, facts: list[JobFacts]) -> None:
    """Queued dependents wait again; those that run keep a wait for when they come back."""
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
        wait = Wait(fact.id, 1, 0, gone.due_at, fact.age_from, gone.ticket)
        await work.tx.places.add_waits([wait])
        if gone.was_ready and fact.limit:
            work.slots.refill(fact.limit)
    for fact, lease in found.leased:
        ticket = Ticket(
            fact.shape, fact.rank, fact.id, lease.attempt, fact.workflow, fact.limit, fact.excluded
        )
        wait = Wait(fact.id, 1, KEPT_WHILE_RUNNING, 0, fact.age_from, ticket)
        await work.tx.places.add_waits([wait])
