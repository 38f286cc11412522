"""Completing jobs that have ties, in terms of the other roles."""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import Completed, Completion, JobEnd, JobFacts, Lease
from windlass.ports.store.core.jobs import JobsWrite
from windlass.ports.store.core.leases import LeasesWrite
from windlass.ports.store.core.places import PlacesWrite

RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code


async def complete_tied(
    jobs: JobsWrite, places: PlacesWrite, leases: LeasesWrite, now: int, done: Sequence[Completion]
) -> list[Completed]:
    """`FlowWrite.complete_tied`, for stores where it needs no statements of its own."""
    ids = sorted(item[0] for item in done)
    facts = await jobs.lock(ids)
    held = await leases.lock(ids)
    if len(held) < len(ids) or await places.waiting(ids):
        return []
    if not all(_holds(held[item[0]], item) for item in done):
        return []
    ended = sorted(done)
    await leases.drop(ids)
    await jobs.end([_end(facts[item[0]], held[item[0]], item, now) for item in ended])
    return [Completed(job, facts[job].shape, facts[job].workflow) for job in ids]


def _holds(lease: Lease, item: Completion) -> bool:
    mine = lease.attempt, lease.worker, lease.incarnation, lease.state
    return mine == (*item[1:4], RUNNING) and not lease.limit and not lease.queue_limit


def _end(facts: JobFacts, lease: Lease, item: Completion, now: int) -> JobEnd:
    *_, exit_code, result = item
    return JobEnd(
        facts.id, COMPLETED, facts.flags, lease.attempt, facts.failed, facts.lost, lease.worker,
        lease.incarnation, lease.assigned_at, lease.started_at, now, 0, exit_code, None, None,
        result,
    )  # fmt: skip
