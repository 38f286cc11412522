"""Working off intents: what a job's end means to many others, one chunk at a time.

Each step is a transaction of its own, or part of the command's where the store runs
transactions one after another. A crash between two steps loses nothing: the intent is a
row, and the scheduling loop picks it up again.
"""

from windlass.domain.job import ALLOW_FAILURE
from windlass.domain.rank import age_from_ms, level, rank
from windlass.domain.records import Cascade, JobEnd, JobFacts
from windlass.domain.states import STATE_BY_CODE, State
from windlass.engine.dependents import CascadeKind, hold_waits, jobs_ended, meet, release
from windlass.engine.supersede import revive
from windlass.engine.work import Work

BLOCKED = State.BLOCKED.code
ABORTED = State.ABORTED.code


async def advance(work: Work) -> bool:
    """Do one step of the oldest intent; whether there was one."""
    cascade = await work.tx.workflows.pull_cascade()
    if cascade is None:
        return False
    if cascade.kind == CascadeKind.RELEASE:
        await _release_with_new_age(work, cascade.job)
        await work.tx.workflows.advance_cascade(cascade.id, None)
        return True
    chunks = await work.tx.jobs.dependents([cascade.job], cascade.cursor)
    edges = chunks.get(cascade.job)
    if edges is None:
        await work.tx.workflows.advance_cascade(cascade.id, None)
        return True
    await _step(work, cascade, edges)
    await work.tx.workflows.advance_cascade(cascade.id, cascade.cursor + 1)
    return True


async def _step(work: Work, cascade: Cascade, edges: tuple[int, ...]) -> None:
    if cascade.kind == CascadeKind.ABORT:
        await _abort(work, cascade, [edge >> 1 for edge in edges if not edge & 1])
    elif cascade.kind == CascadeKind.SATISFY:
        owner = (await work.tx.jobs.read([cascade.job]))[cascade.job]
        met: dict[int, int] = {}
        for edge in edges:
            if edge & 1 or _satisfies(owner):
                met[edge >> 1] = met.get(edge >> 1, 0) + 1
        await meet(work, met)
    else:
        await revive(work, cascade, edges)


def _satisfies(facts: JobFacts) -> bool:
    return facts.state == State.COMPLETED.code or bool(facts.flags & ALLOW_FAILURE)


async def _abort(work: Work, cascade: Cascade, jobs: list[int]) -> None:
    """Abort those of these jobs that still wait, and go on to their own dependents."""
    locked = await work.tx.jobs.lock(sorted(jobs))
    await hold_waits(work, (), sorted(locked))
    waits = await work.tx.places.take_waits(sorted(locked))
    owner = (await work.tx.jobs.read([cascade.job]))[cascade.job]
    reason = f"Dependency {cascade.job} {STATE_BY_CODE[owner.state]}"
    facts: list[JobFacts] = []
    ends: list[JobEnd] = []
    await work.catalog.know(work.tx, (locked[wait.job].shape for wait in waits))
    for wait in waits:
        fact = locked[wait.job]
        facts.append(fact)
        ends.append(end_without_attempt(fact, ABORTED, work.now, reason))
        work.move(
            fact.id, fact.shape, fact.workflow, fact.attempt, BLOCKED, ABORTED, reason,
            data={"cause": cascade.job},
        )  # fmt: skip
    if ends:
        await work.tx.jobs.end(ends)
        await jobs_ended(work, facts, ends)
        work.effects.ended += [end.job for end in ends]


async def _release_with_new_age(work: Work, job: int) -> None:
    """Queue a job that was blocked for more than an hour; its age counts from then."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None or facts.state:
        return
    for wait in await work.tx.places.meet({job: 1}, False):
        age_from = age_from_ms(facts.age_from, None, work.now)
        await work.catalog.know(work.tx, [facts.shape])
        weight = work.catalog.weight(work.catalog.queue_of(facts.shape))
        place = rank(
            age_from, level(weight, facts.base, facts.adjustment), work.catalog.interval_ms
        )
        await work.tx.jobs.set_priority(job, facts.adjustment, age_from, place)
        await release(work, [wait._replace(ticket=wait.ticket._replace(rank=place))])


def end_without_attempt(facts: JobFacts, state: int, now: int, reason: str) -> JobEnd:
    """A job ends while no attempt is in force."""
    return JobEnd(
        facts.id, state, facts.flags, facts.attempt, facts.failed, facts.lost,
        0, 0, 0, 0, now, 0, None, None, reason, None,
    )  # fmt: skip
