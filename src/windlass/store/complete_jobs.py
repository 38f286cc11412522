"""Completing jobs that have ties, in terms of the other roles."""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import Completed, JobEnd, JobFacts, Lease, Worker
from windlass.ports.store.core.jobs import JobsWrite
from windlass.ports.store.core.leases import LeasesWrite
from windlass.ports.store.core.places import PlacesWrite
from windlass.wire.sync import Finished

RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code


async def complete_tied(
    jobs: JobsWrite,
    places: PlacesWrite,
    leases: LeasesWrite,
    now: int,
    done: Sequence[tuple[Worker, Finished]],
) -> list[Completed]:
    """Implements `FlowWrite.complete_tied` for stores that need no statements of their own."""
    items = {item.job: item for _, item in done}
    ids = sorted(items)
    facts = await jobs.lock(ids)
    held = await leases.lock(ids)
    if len(held) < len(ids) or await places.waiting(ids):
        return []
    if not all(is_free_of_limits(held[item.job], worker, item) for worker, item in done):
        return []
    await leases.drop(ids)
    await jobs.end([_end(facts[job], held[job], items[job], now) for job in ids])
    return [Completed(facts[job].id, facts[job].shape, facts[job].workflow) for job in ids]


def is_free_of_limits(lease: Lease, worker: Worker, item: Finished) -> bool:
    """Returns whether a running lease is the one reported on and counts against no limit."""
    held = lease.attempt, lease.worker, lease.incarnation, lease.state
    mine = item.attempt, worker.id, worker.incarnation, RUNNING
    return held == mine and lease.limit is None and lease.queue_limit is None


def _end(facts: JobFacts, lease: Lease, item: Finished, now: int) -> JobEnd:
    return JobEnd(
        facts.id, COMPLETED, facts.flags, lease.attempt, facts.failed, facts.lost, lease.worker,
        lease.incarnation, lease.assigned_at, lease.started_at, now, 0, item.exit_code, None,
        None, item.result,
    )  # fmt: skip
