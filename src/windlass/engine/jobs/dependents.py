"""Handles what the end of a job means to the jobs that wait for it.

A satisfied edge lowers the dependent's count of unmet conditions in the same transaction. An
unsatisfied one aborts the dependent. More than one chunk of dependents, or one that was blocked so
long that its rank changes, needs locks that this transaction may no longer take. For those we
record a cascade here; `engine/workflows.py` runs it right after, also after a crash.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.rank import age_from_ms
from windlass.domain.lifecycle.states import BLOCKED, COMPLETED, QUEUED
from windlass.domain.lifecycle.workflow_state import FORGIVEN, ended_badly
from windlass.domain.rows.records import (
    Cascade,
    CascadeKind,
    JobEnd,
    JobFacts,
    Ticket,
    Wait,
)
from windlass.domain.values.ids import JobId
from windlass.engine.jobs.places import make_ready, plan_for
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

CHUNK = 1_000

_KIND = attrgetter("shape", "workflow")


async def hold_waits(work: Work, jobs: Iterable[int], ending: Sequence[int]) -> dict[int, Wait]:
    """Locks the waits of these jobs and of the jobs that their ends affect, in one order.

    A superseding job has a higher number than its dependents, so locking a job before its
    dependents would not be in ascending order.
    """
    edges = await work.tx.jobs.dependents(ending, 0) if ending else {}
    own = sorted({*jobs, *ending})
    await hold_dependents(work, own, edges)
    return await work.tx.places.waiting(own)


async def hold_dependents(
    work: Work, jobs: Sequence[int], edges: Mapping[int, Sequence[int]]
) -> None:
    """Locks the waits of these jobs and of those behind these edges, in the same order.

    The statement after the lock also sees jobs that return to `waits` meanwhile.
    """
    if work.inline:
        return
    waiting = {edge >> 1 for some in edges.values() if len(some) < CHUNK for edge in some}
    await work.tx.places.hold(sorted({*jobs, *waiting}))


class Ended(NamedTuple):
    """A job that has just ended, and whether that satisfies its dependents."""

    job: int
    satisfies: bool
    reason: str | None


async def jobs_ended(work: Work, facts: Sequence[JobFacts], ends: Sequence[JobEnd]) -> None:
    """Updates the dependents of these jobs, which have just ended."""
    edges = await work.tx.jobs.dependents([fact.id for fact in facts], 0)
    ended: list[Ended] = []
    for fact, end in zip(facts, ends, strict=True):
        forgiven = bool(fact.flags & ALLOW_FAILURE)
        if fact.workflow is not None and forgiven and ended_badly(end.state):
            work.count_in_workflow(fact.workflow, FORGIVEN, 1)
        ended.append(Ended(fact.id, end.state == COMPLETED or forgiven, end.reason))
    await notify_dependents(work, ended, edges)


async def satisfy_dependents(work: Work, edges: Mapping[int, Sequence[int]]) -> None:
    """Updates the dependents of jobs that just completed; `edges` are the first chunks."""
    satisfied: list[Sequence[int]] = []
    for job, waiting in edges.items():
        if len(waiting) < CHUNK:
            satisfied.append(waiting)
        else:
            work.cascades.append(Cascade.of_job(JobId(job), CascadeKind.SATISFY))
    await _count_met(work, satisfied)


async def notify_dependents(
    work: Work, ended: Iterable[Ended], edges: Mapping[int, Sequence[int]]
) -> None:
    """Meets conditions at once; `edges` are the first chunks of dependents."""
    satisfied: list[Sequence[int]] = []
    for job, satisfies, reason in ended:
        waiting = edges.get(job)
        if waiting is None:
            continue
        if len(waiting) >= CHUNK:
            kind = CascadeKind.SATISFY if satisfies else CascadeKind.FAIL
            work.cascades.append(Cascade.of_job(JobId(job), kind, reason))
        elif satisfies:
            satisfied.append(waiting)
        else:
            satisfied.append([edge for edge in waiting if edge & 1])
            if len(satisfied[-1]) < len(waiting):
                work.cascades.append(Cascade.of_job(JobId(job), CascadeKind.ABORT, reason))
    await _count_met(work, satisfied)


async def _count_met(work: Work, edges: Sequence[Sequence[int]]) -> None:
    """Meets each dependent's conditions once for each edge that leads to it."""
    met: dict[int, int] = {}
    for edge, times in Counter(chain.from_iterable(edges)).items():
        met[edge >> 1] = met.get(edge >> 1, 0) + times
    if met:
        await meet(work, met)


async def meet(work: Work, met: dict[int, int], manual: bool = False) -> None:
    """Lowers the unmet counts of these jobs and queues those that wait for nothing more."""
    if manual:
        freed = await work.tx.places.meet(met, manual)
    else:
        young_from = age_from_ms(0, None, work.now)  # else its age counts from a later time now
        ready, freed = await work.tx.flow.free(met, work.now, young_from)
        await _note_released(work, ready)
        work.effects.arrive(ready)
    late = [
        wait for wait in freed if wait.decides or (not wait.is_running and ages_anew(work, wait))
    ]
    for wait in late:
        await hold_back(work, wait)
    held_back = {wait.job for wait in late}
    await release(
        work,
        [w for w in freed if w.job not in held_back and not w.is_running],
    )


async def hold_back(work: Work, wait: Wait) -> None:
    """Makes a job without other conditions wait until a cascade has processed it."""
    kind = CascadeKind.DECIDE if wait.decides else CascadeKind.RELEASE
    manual = wait.manual if wait.decides else 0
    await work.tx.places.add_waits([wait._replace(unmet=1, manual=manual)])
    work.cascades.append(Cascade.of_job(wait.job, kind))


def ages_anew(work: Work, wait: Wait) -> bool:
    """Returns True if the job was blocked so long that its age counts from a later time now."""
    return age_from_ms(wait.age_from, None, work.now) > wait.age_from


async def release(work: Work, waits: Sequence[Wait]) -> None:
    """Queues jobs whose last condition was met."""
    await _note_released(work, [wait.ticket for wait in waits])
    ready = []
    for wait in waits:
        if wait.not_before is not None and wait.not_before > work.now:
            await plan_for(work, wait.not_before, QUEUED, wait.ticket)
        else:
            ready.append(wait.ticket)
    await make_ready(work, ready)


async def _note_released(work: Work, tickets: Sequence[Ticket]) -> None:
    """Records and counts that these jobs are queued."""
    if not tickets:
        return
    _, _, jobs, attempts, *_ = zip(*tickets, strict=True)
    work.move_all(jobs, attempts, ((BLOCKED, QUEUED),), reason="Dependencies met")
    kinds = Counter(map(_KIND, tickets))
    await work.catalog.know(work.tx, (shape for shape, _ in kinds))
    for (shape, workflow), alike in kinds.items():
        work.count_moves(shape, workflow, BLOCKED, QUEUED, alike)


async def chains_of(tx: ReadTx, jobs: Iterable[int]) -> dict[int, list[JobFacts]]:
    """Returns each of these jobs that exists, with those that superseded it, in order."""
    chains: dict[int, list[JobFacts]] = {}
    ahead = {job: job for job in jobs}
    while ahead:
        facts = await tx.jobs.read(sorted(set(ahead.values())))
        moved = {job: facts[last] for job, last in ahead.items() if last in facts}
        for job, fact in moved.items():
            chains.setdefault(job, []).append(fact)
        ahead = {job: fact.superseded_by for job, fact in moved.items() if fact.superseded_by}
    return chains


async def newest_of(tx: ReadTx, jobs: Iterable[int]) -> dict[int, JobFacts]:
    """Returns the last existing successor of each of these jobs."""
    return {job: chain[-1] for job, chain in (await chains_of(tx, jobs)).items()}
