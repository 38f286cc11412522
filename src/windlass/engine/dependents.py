"""What the end of a job means to the jobs that wait for it.

A satisfied edge lowers the dependent's count of unmet conditions in the same
transaction. An unsatisfied one aborts the dependent, and more than one chunk of
dependents, or one that was blocked so long that its rank changes, needs locks this
transaction may not take any more: for those an intent is recorded here and worked off
right after by `engine/cascades.py`, also after a crash.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum

from windlass.domain.job import ALLOW_FAILURE
from windlass.domain.rank import age_from_ms
from windlass.domain.records import Cascade, JobEnd, JobFacts, Wait
from windlass.domain.states import State
from windlass.domain.workflow import FORGIVEN
from windlass.engine.enqueue import make_ready, plan_for
from windlass.engine.work import Work

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
COMPLETED = State.COMPLETED.code

CHUNK = 1_000
KEPT_WHILE_RUNNING = 2  # Wait.manual of a job that runs though a dependency was superseded


class CascadeKind(IntEnum):
    """What is to be done to the dependents of a job, or to the job itself."""

    SATISFY = 1
    ABORT = 2
    REVIVE = 3  # supersede what was aborted because of the job
    RELEASE = 4  # the job's own last condition was met, but its age must be set anew


async def hold_waits(work: Work, jobs: Iterable[int], ending: Sequence[int]) -> dict[int, Wait]:
    """Lock the waits of these jobs, and of those that will hear of an end, in one order.

    A job that took the place of another has a higher number than its dependents, so locks
    on the way from a job to its dependents would not ascend.
    """
    edges = await work.tx.jobs.dependents(ending, 0) if ending else {}
    heard = {edge >> 1 for some in edges.values() if len(some) < CHUNK for edge in some}
    return await work.tx.places.waiting(sorted({*jobs, *ending, *heard}))


async def jobs_ended(work: Work, facts: Sequence[JobFacts], ends: Sequence[JobEnd]) -> None:
    """Tell the dependents of these jobs, which have just ended."""
    edges = await work.tx.jobs.dependents([fact.id for fact in facts], 0)
    met: dict[int, int] = {}
    for fact, end in zip(facts, ends, strict=True):
        forgiven = bool(fact.flags & ALLOW_FAILURE)
        if fact.workflow and forgiven and end.state != COMPLETED:
            work.count_in_workflow(fact.workflow, FORGIVEN, 1)
        waiting = edges.get(fact.id)
        if waiting is None:
            continue
        if len(waiting) >= CHUNK:
            work.cascades += _intents(fact.id, end.state == COMPLETED or forgiven, end.reason)
            continue
        if _spread(waiting, end.state == COMPLETED or forgiven, met):
            work.cascades.append(Cascade(0, fact.id, CascadeKind.ABORT, 0, end.reason))
    if met:
        await meet(work, met)


def _intents(job: int, satisfied: bool, reason: str | None) -> list[Cascade]:
    intents = [Cascade(0, job, CascadeKind.SATISFY, 0, reason)]
    if not satisfied:
        intents.append(Cascade(0, job, CascadeKind.ABORT, 0, reason))
    return intents


def _spread(edges: Iterable[int], satisfied: bool, met: dict[int, int]) -> bool:
    """Count the edges that are met; whether there are others, to be aborted."""
    unsatisfied = False
    for edge in edges:
        if satisfied or edge & 1:
            met[edge >> 1] = met.get(edge >> 1, 0) + 1
        else:
            unsatisfied = True
    return unsatisfied


async def meet(work: Work, met: dict[int, int], manual: bool = False) -> None:
    """Lower the unmet counts of these jobs and queue those that wait for nothing more."""
    freed = await work.tx.places.meet(met, manual)
    late = [wait for wait in freed if wait.manual != KEPT_WHILE_RUNNING and ages_anew(work, wait)]
    for wait in late:
        await work.tx.places.add_waits([wait._replace(unmet=1, manual=0)])
        work.cascades.append(Cascade(0, wait.job, CascadeKind.RELEASE, 0, None))
    held_back = {wait.job for wait in late}
    await release(
        work,
        [w for w in freed if w.job not in held_back and w.manual != KEPT_WHILE_RUNNING],
    )


def ages_anew(work: Work, wait: Wait) -> bool:
    """Whether the job was blocked for so long that its age starts later now."""
    return age_from_ms(wait.age_from, None, work.now) > wait.age_from


async def release(work: Work, waits: Sequence[Wait]) -> None:
    """Queue jobs whose last condition was met."""
    if not waits:
        return
    await work.catalog.know(work.tx, (wait.ticket.shape for wait in waits))
    ready = []
    for wait in waits:
        ticket = wait.ticket
        work.move(
            wait.job, ticket.shape, ticket.workflow, ticket.attempt, BLOCKED, QUEUED,
            "Dependencies met",
        )  # fmt: skip
        if wait.not_before > work.now:
            await plan_for(work, wait.not_before, QUEUED, ticket)
        else:
            ready.append(ticket)
    await make_ready(work, ready)
