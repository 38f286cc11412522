"""Manual conditions: an operator accepts a waiting job, or rejects it."""

from typing import NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.domain.values.errors import Conflict, NotFound
from windlass.engine.jobs.close import end_without_attempt
from windlass.engine.jobs.dependents import hold_waits, jobs_ended, meet
from windlass.engine.jobs.inherit_rank import pass_on_ended
from windlass.engine.transaction.unit_of_work import Work

BLOCKED = State.BLOCKED.code
ABORTED = State.ABORTED.code


class Unblocked(NamedTuple):
    """Whether this call met the condition, or it was already met."""

    job: int
    applied: bool


async def unblock(work: Work, job: int, accept: bool, reason: str, actor: str | None) -> Unblocked:
    """Meets a job's manual condition, or aborts the job."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None:
        raise NotFound("job", job)
    wait = (await hold_waits(work, [job], [] if accept else [job])).get(job)
    if wait is None or not wait.needs_operator:
        if accept and facts.is_open:
            return Unblocked(job, False)
        if not accept and facts.state == ABORTED:
            return Unblocked(job, False)
        raise Conflict("not_waiting", f"job {job} is not waiting for an operator")
    await work.catalog.know(work.tx, [facts.shape])
    if accept:
        await meet(work, {job: 1}, manual=True)
        return Unblocked(job, True)
    await work.tx.places.take_waits([job])
    work.move(
        facts.id, facts.shape, facts.workflow, facts.attempt, BLOCKED, ABORTED, reason,
        actor=actor,
    )  # fmt: skip
    end = end_without_attempt(facts, ABORTED, work.now, reason)
    await work.tx.jobs.end([end])
    await jobs_ended(work, [facts], [end])
    pass_on_ended(work, [(job, facts.flags)])
    work.effects.ended.append(job)
    return Unblocked(job, True)
