"""Ending jobs while they wait, in terms of the other roles."""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import KEPT_WHILE_RUNNING, JobEnd, JobFacts, Waited
from windlass.ports.store.core.jobs import JobsWrite
from windlass.ports.store.core.places import PlacesWrite

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code


async def end_waiting(
    jobs: JobsWrite, places: PlacesWrite, ids: Sequence[int], state: int, now: int, reason: str,
    *, queued: bool,
) -> list[Waited]:  # fmt: skip
    """Implements `FlowWrite.end_waiting` for stores that need no statements of their own."""
    facts = {job: fact for job, fact in (await jobs.lock(ids)).items() if fact.is_open}
    waits = await places.waiting(sorted(facts))
    kept = {job for job, wait in waits.items() if wait.manual == KEPT_WHILE_RUNNING}
    blocked = [wait.job for wait in await places.take_waits([j for j in waits if j not in kept])]
    others = [fact for job, fact in facts.items() if job not in waits]
    ready = [ticket.job for ticket in await places.take_ready(others if queued else [])]
    gone = sorted([(job, BLOCKED) for job in blocked] + [(job, QUEUED) for job in ready])
    await jobs.end([_end(facts[job], state, now, reason) for job, _ in gone])
    return [_waited(facts[job], was) for job, was in gone]


def _waited(fact: JobFacts, was: int) -> Waited:
    return Waited(fact.id, was, fact.shape, fact.workflow, fact.limit, fact.flags, fact.attempt)


def _end(fact: JobFacts, state: int, now: int, reason: str) -> JobEnd:
    return JobEnd(
        fact.id, state, fact.flags, fact.attempt, fact.failed, fact.lost, None, None, None, None,
        now, 0, None, None, reason, None,
    )  # fmt: skip
