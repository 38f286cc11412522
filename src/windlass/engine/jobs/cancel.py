"""Cancels jobs: waiting ones end at once, assigned ones are taken back, running ones stop."""

from collections.abc import Sequence

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import (
    ASSIGNED,
    BLOCKED,
    CANCELED,
    CANCELING,
    QUEUED,
    STATE_BY_CODE,
)
from windlass.domain.lifecycle.workflow_state import FORGIVEN, ended_badly
from windlass.domain.rows.records import JobEnd, JobFacts, Lease, Waited
from windlass.engine.jobs.close import Closing, end_without_attempt
from windlass.engine.jobs.dependents import (
    Ended,
    hold_dependents,
    hold_waits,
    jobs_ended,
    notify_dependents,
)
from windlass.engine.jobs.places import Withdrawn, lock_leased, withdraw
from windlass.engine.jobs.priority import pass_on_ended
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.jobs import CanceledJob

MANY = 100  # from this many jobs on, it pays to look for waiting ones first


async def cancel(
    work: Work, jobs: Sequence[int], reason: str, actor: str | None
) -> list[CanceledJob]:
    """Cancels these jobs; the answers are in the order of the ids."""
    if len(jobs) < MANY:
        return await _cancel(work, jobs, reason, actor)
    ended = await _end_in_bulk(work, sorted(set(jobs)), reason, actor)
    others = await _cancel(work, [job for job in jobs if job not in ended], reason, actor)
    found = {done.id: done for done in others}
    return [found.get(job) or CanceledJob(job, "canceled", True) for job in jobs]


async def _end_in_bulk(
    work: Work, jobs: Sequence[int], reason: str, actor: str | None
) -> frozenset[int]:
    """Ends those that are waiting or ready, as most of many jobs are."""
    await work.tx.jobs.hold(jobs)
    edges = await work.tx.jobs.dependents(jobs, 0)
    await hold_dependents(work, jobs, edges)
    ended = await work.tx.flow.end_waiting(jobs, CANCELED, work.now, reason, queued=True)
    await note_ended(work, ended, CANCELED, reason, actor)
    notified = [
        Ended(row.job, bool(row.flags & ALLOW_FAILURE), reason) for row in ended if row.job in edges
    ]
    await notify_dependents(work, notified, edges)
    return frozenset(row.job for row in ended)


async def _cancel(
    work: Work, jobs: Sequence[int], reason: str, actor: str | None
) -> list[CanceledJob]:
    facts = await work.tx.jobs.lock(sorted(set(jobs)))
    await work.catalog.know(work.tx, {fact.shape for fact in facts.values()})
    open_jobs = [fact for fact in facts.values() if fact.is_open]
    answers: dict[int, CanceledJob] = {
        fact.id: CanceledJob(fact.id, str(STATE_BY_CODE[fact.state]), False)
        for fact in facts.values()
        if fact.state is not None
    }
    await hold_waits(work, (), sorted(fact.id for fact in open_jobs))
    found = await withdraw(work, open_jobs)
    running_too = [w for w in found.withdrawn if w.wait and w.wait.is_running]
    leased = [*found.leased, *await lock_leased(work, [w.facts for w in running_too])]
    kept = {w.facts.id for w in running_too}
    waiting = [w for w in found.withdrawn if w.facts.id not in kept]
    await end_waiting(work, waiting, reason, actor)
    answers.update({w.facts.id: CanceledJob(w.facts.id, "canceled", True) for w in waiting})
    answers.update(await _stop(work, leased, reason, actor))
    return [answers.get(job, CanceledJob(job, None, False)) for job in jobs]


async def end_waiting(
    work: Work,
    waiting: Sequence[Withdrawn],
    reason: str,
    actor: str | None,
    to: int = CANCELED,
    failure: int = 0,
) -> None:
    """Ends jobs that were taken out of the places where they waited; cancels them by default."""
    if not waiting:
        return
    ends: list[JobEnd] = []
    for facts, state, ticket, *_ in waiting:
        work.move(
            facts.id, facts.shape, facts.workflow, ticket.attempt, state, to, reason,
            actor=actor,
        )  # fmt: skip
        ended = facts._replace(attempt=ticket.attempt)
        ends.append(end_without_attempt(ended, to, work.now, reason)._replace(failure=failure))
    await work.tx.jobs.end(ends)
    await jobs_ended(work, [w.facts for w in waiting], ends)
    work.effects.ended += [end.job for end in ends]
    pass_on_ended(work, ((w.facts.id, w.facts.flags) for w in waiting if w.wait is not None))
    for gone in waiting:
        if gone.was_ready and gone.facts.limit:
            work.slots.refill(gone.facts.limit)


async def _stop(
    work: Work, leased: Sequence[tuple[JobFacts, Lease]], reason: str, actor: str | None
) -> dict[int, CanceledJob]:
    """Ends assigned attempts at once, since no process can exist; tells running ones to stop."""
    answers: dict[int, CanceledJob] = {}
    closing = Closing(work)
    notified: list[int] = []
    for facts, lease in leased:
        if lease.state == ASSIGNED:
            closing.cancel(facts, lease._replace(reason=reason), reason)
            answers[facts.id] = CanceledJob(facts.id, "canceled", True)
        elif lease.state == CANCELING:
            answers[facts.id] = CanceledJob(facts.id, "canceling", False)
        else:
            work.move(
                facts.id, facts.shape, facts.workflow, lease.attempt, lease.state, CANCELING,
                reason, worker=lease.worker, incarnation=lease.incarnation, actor=actor,
            )  # fmt: skip
            notified.append(facts.id)
            work.effects.pokes.append(lease.worker)
            answers[facts.id] = CanceledJob(facts.id, "canceling", True)
    if notified:
        await work.tx.leases.mark(notified, CANCELING, reason)
    await closing.write()
    return answers


async def note_ended(
    work: Work, ended: Sequence[Waited], to: int, reason: str, actor: str | None = None
) -> None:
    """Counts and records jobs that ended while they waited, equal ones together."""
    await work.catalog.know(work.tx, {row.shape for row in ended})
    alike: dict[int, list[Waited]] = {}
    counts: dict[tuple[int, int | None, int], int] = {}
    for row in ended:
        alike.setdefault(row.state, []).append(row)
        kind = row.shape, row.workflow, row.state
        counts[kind] = counts.get(kind, 0) + 1
        if row.flags & ALLOW_FAILURE and row.workflow is not None and ended_badly(to):
            work.count_in_workflow(row.workflow, FORGIVEN, 1)
        if row.limit and row.state == QUEUED:
            work.slots.refill(row.limit)
    for state, rows in alike.items():
        jobs, attempts = [row.job for row in rows], [row.attempt for row in rows]
        work.move_all(jobs, attempts, ((state, to),), reason=reason, actor=actor)
    for (shape, workflow, state), jobs_alike in counts.items():
        work.count_moves(shape, workflow, state, to, jobs_alike)
    pass_on_ended(work, ((row.job, row.flags) for row in ended if row.state == BLOCKED))
    work.effects.ended += [row.job for row in ended]
