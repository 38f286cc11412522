"""Decides about waiting jobs: one whose last condition was met, and one that an operator judges.

The first decides from when a job's age counts, and whether it runs. For the second, an operator
accepts a job with a manual condition, or rejects it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from windlass.domain.job.job import ALLOW_FAILURE, JobSpec, decode_spec
from windlass.domain.job.run_if import Ended, holds
from windlass.domain.lifecycle.rank import age_from_ms
from windlass.domain.lifecycle.states import (
    ABORTED,
    BLOCKED,
    COMPLETED,
    SKIPPED,
    STATE_BY_CODE,
    State,
)
from windlass.domain.rows.records import JobFacts, Wait
from windlass.domain.values.errors import Conflict, existing
from windlass.engine.jobs.cancel import end_waiting
from windlass.engine.jobs.dependents import (
    chains_of,
    hold_back,
    hold_waits,
    meet,
    newest_of,
    release,
)
from windlass.engine.jobs.places import Withdrawn
from windlass.engine.jobs.priority import ranks_of
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

_decode = msgspec.json.Decoder().decode


async def release_with_new_age(work: Work, job: int) -> None:
    """Queues a job that was blocked for over an hour; its age counts from a later time."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None or not facts.is_open:
        return
    for wait in await work.tx.places.meet({job: 1}, False):
        await _release(work, facts, wait)


async def decide(work: Work, job: int) -> None:
    """Queues a job if its condition holds, now that its dependencies have ended; else skips it."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None or not facts.is_open:
        return
    wait = (await hold_waits(work, [job], [job])).get(job)
    if wait is None or not wait.decides or not await work.tx.places.meet({job: 1}, False):
        return  # A dependency was retried meanwhile: its end leads here again.
    spec = decode_spec((await work.tx.jobs.specs([job]))[job])
    needs = await _needs(work.tx, job, spec)
    if needs is None:
        await hold_back(work, wait)  # The cascade that makes it wait for the new job comes first.
        return
    condition = spec.run_if or ""
    if holds(condition, await _ended(work.tx, spec, needs)):
        await work.catalog.know(work.tx, [facts.shape])
        await _release(work, facts, wait._replace(unmet=0, manual=0))
        return
    await _end_blocked(work, facts, wait, f"Its condition does not hold: {condition}", SKIPPED)


async def _needs(tx: ReadTx, job: int, spec: JobSpec) -> dict[int, JobFacts] | None:
    """Returns the jobs that this one waited for: the newest successor of each, all ended.

    Returns None if one was retried and a cascade is about to make this job wait for the successor.
    That concerns only edges of dependents: a job created after its dependency ended has no such
    edge, and for it the original end counts.
    """
    found = await newest_of(tx, [ref for ref in spec.after_any if isinstance(ref, int)])
    for ref in [ref for ref, fact in found.items() if fact.is_open]:
        chain = (await chains_of(tx, [ref]))[ref]
        if await _is_dependent(tx, job, [fact.id for fact in chain]):
            return None
        ended = [fact for fact in chain if not fact.is_open]
        if not ended:
            return None
        found[ref] = ended[-1]
    return found


async def _is_dependent(tx: ReadTx, job: int, of: Sequence[int]) -> bool:
    chunk = 0
    while found := await tx.jobs.dependents(of, chunk):
        if any(edge >> 1 == job for edges in found.values() for edge in edges):
            return True
        chunk += 1
    return False


async def _release(work: Work, facts: JobFacts, wait: Wait) -> None:
    age_from = age_from_ms(facts.age_from, None, work.now)
    await work.catalog.know(work.tx, [facts.shape])
    place = (await ranks_of(work, [facts._replace(age_from=age_from)]))[facts.id]
    await work.tx.jobs.set_priority(facts.id, facts.adjustment, age_from, place, facts.flags)
    await release(work, [wait._replace(ticket=wait.ticket._replace(rank=place))])


async def _end_blocked(
    work: Work, facts: JobFacts, wait: Wait, reason: str, to: int, actor: str | None = None
) -> None:
    """Ends a job that was taken out of `waits`."""
    await work.catalog.know(work.tx, [facts.shape])
    gone = Withdrawn(facts, BLOCKED, wait.ticket, wait)
    await end_waiting(work, [gone], reason, actor, to)


async def _ended(tx: ReadTx, spec: JobSpec, needs: Mapping[int, JobFacts]) -> list[Ended]:
    """Returns the jobs that this one waited for: the newest of each."""
    jobs = sorted({fact.id for fact in needs.values()})
    names = {job: decode_spec(body).name for job, body in (await tx.jobs.specs(jobs)).items()}
    completed = sorted({fact.id for fact in needs.values() if fact.state == COMPLETED})
    results = await tx.jobs.results(completed) if "output" in (spec.run_if or "") else {}
    return [
        Ended(
            fact.id,
            names.get(fact.id),
            STATE_BY_CODE[fact.final_state] or State.COMPLETED,
            bool(fact.flags & ALLOW_FAILURE),
            _decode(results.get(fact.id, b"null")),
        )
        for fact in {fact.id: fact for fact in needs.values()}.values()
    ]


async def unblock(work: Work, job: int, accept: bool, reason: str, actor: str | None) -> bool:
    """Meets a job's manual condition, or aborts the job; returns False if it was met already."""
    facts = existing("job", job, (await work.tx.jobs.lock([job])).get(job))
    wait = (await hold_waits(work, [job], [] if accept else [job])).get(job)
    if wait is None or not wait.needs_operator:
        if accept and facts.is_open:
            return False
        if not accept and facts.state == ABORTED:
            return False
        raise Conflict("not_waiting", f"job {job} is not waiting for an operator")
    if accept:
        await work.catalog.know(work.tx, [facts.shape])
        await meet(work, {job: 1}, manual=True)
    else:
        await work.tx.places.take_waits([job])
        await _end_blocked(work, facts, wait, reason, ABORTED, actor)
    return True
