"""Decides about a job whose last condition was met: when it counts from, and whether it runs."""

from collections.abc import Mapping

import msgspec

from windlass.domain.job.job import ALLOW_FAILURE, JobSpec, decode_spec
from windlass.domain.job.run_if import Ended, holds
from windlass.domain.lifecycle.rank import age_from_ms
from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.rows.records import JobFacts, Wait
from windlass.engine.jobs.close import end_without_attempt
from windlass.engine.jobs.dependents import hold_back, hold_waits, jobs_ended, release
from windlass.engine.jobs.inherit_rank import pass_on_ended, ranks_of
from windlass.engine.jobs.supersede import newest_of
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.store import ReadTx

BLOCKED = State.BLOCKED.code
COMPLETED = State.COMPLETED.code
SKIPPED = State.SKIPPED.code

_decode = msgspec.json.Decoder().decode


async def release_with_new_age(work: Work, job: int) -> None:
    """Queues a job that was blocked for over an hour; its age counts from then."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None or not facts.is_open:
        return
    for wait in await work.tx.places.meet({job: 1}, False):
        await _release(work, facts, wait)


async def decide(work: Work, job: int) -> None:
    """Queues a job if its condition holds, now that the others have ended; else skips it."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None or not facts.is_open:
        return
    wait = (await hold_waits(work, [job], [job])).get(job)
    if wait is None or not wait.decides or not await work.tx.places.meet({job: 1}, False):
        return  # One of the others was retried meanwhile: its end leads here again.
    spec = decode_spec((await work.tx.jobs.specs([job]))[job])
    needs = await newest_of(work.tx, [ref for ref in spec.after_any if isinstance(ref, int)])
    if any(fact.is_open for fact in needs.values()):
        await hold_back(work, wait)  # The cascade that lets it wait for the new job comes first.
        return
    condition = spec.run_if or ""
    if holds(condition, await _ended(work.tx, spec, needs)):
        await work.catalog.know(work.tx, [facts.shape])
        await _release(work, facts, wait._replace(unmet=0, manual=0))
        return
    await _skip(work, facts, f"Its condition does not hold: {condition}")


async def _release(work: Work, facts: JobFacts, wait: Wait) -> None:
    age_from = age_from_ms(facts.age_from, None, work.now)
    await work.catalog.know(work.tx, [facts.shape])
    place = (await ranks_of(work, [facts._replace(age_from=age_from)]))[facts.id]
    await work.tx.jobs.set_priority(facts.id, facts.adjustment, age_from, place, facts.flags)
    await release(work, [wait._replace(ticket=wait.ticket._replace(rank=place))])


async def _skip(work: Work, facts: JobFacts, reason: str) -> None:
    await work.catalog.know(work.tx, [facts.shape])
    work.move(facts.id, facts.shape, facts.workflow, facts.attempt, BLOCKED, SKIPPED, reason)
    end = end_without_attempt(facts, SKIPPED, work.now, reason)
    await work.tx.jobs.end([end])
    await jobs_ended(work, [facts], [end])
    pass_on_ended(work, [(facts.id, facts.flags)])
    work.effects.ended.append(facts.id)


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
