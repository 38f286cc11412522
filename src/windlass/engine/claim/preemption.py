"""Preemption, if enabled: a job of a higher queue takes the worker of a lower one.

Both sides opt in: the queue that preempts, and the job that may be preempted. Once per round the
scheduling loop checks the best jobs of such queues. If only preemptible jobs of lower queues keep
one from a worker, we tell the youngest of these that ranks behind it to stop. Like a canceled job
it has a grace period to save its work; then it is queued again, without blame.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.matching.room import Room
from windlass.domain.matching.workers import in_good_standing
from windlass.domain.rows.records import Worker
from windlass.engine.claim.reservations import rooms_of
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.placement import Preemptible
from windlass.store.sql.places import Head

RUNNING = State.RUNNING.code
MAX_PER_ROUND = 20  # jobs told to stop in one round
PREEMPTED = "preempted"


class _Fleet:
    """Workers that may claim, their remaining room, and which jobs could be preempted."""

    def __init__(
        self, workers: Sequence[Worker], rooms: Mapping[int, Room], held: Mapping[int, int]
    ) -> None:
        self.workers = {row.id: row for row in workers}
        self.rooms = rooms
        self.slots = {row.id: row.slots - held.get(row.id, 0) for row in workers}


async def preempt(work: Work) -> int:
    """Tells preemptible jobs to make room for more urgent queues; returns how many."""
    if not any(row.preempts and not row.paused for row in work.catalog.queues.values()):
        return 0
    every = await work.tx.places.heads()
    await work.catalog.know(work.tx, (head.shape for head in every))
    heads = await _preempting(work, every)
    running = await work.tx.placement.preemptible() if heads else []
    if not running:
        return 0
    await work.catalog.know(work.tx, (lease.shape for lease in running))
    workers = [row for row in await work.tx.workers.all() if in_good_standing(row.status)]
    held = await work.tx.leases.count([row.id for row in workers])
    fleet = _Fleet(workers, await rooms_of(work, workers, work.catalog.reserved), held)
    victims: dict[int, Head] = {}
    pending = [lease for lease in running if lease.told]
    left = [lease for lease in running if not lease.told]
    for head in sorted(heads, key=lambda h: (h.rank, h.job))[:MAX_PER_ROUND]:
        victim = _victim(work, fleet, head, pending, left)
        if victim is not None:
            left.remove(victim)
            victims[victim.job] = head
    stopped = await tell_to_stop(work, {job: _for(work, head) for job, head in victims.items()})
    if stopped:
        work.effects.count("preemptions", stopped)
    return stopped


async def _preempting(work: Work, heads: Sequence[Head]) -> list[Head]:
    """Returns the jobs that may preempt others and that nothing else holds back."""
    catalog = work.catalog
    found = []
    for head in heads:
        row = catalog.queues.get(catalog.queue_of(head.shape))
        if row is not None and row.preempts and not row.paused:
            found.append(head)
    limited = [head for head in found if catalog.limit_of(catalog.queue_of(head.shape))]
    running = await work.tx.placement.running() if limited else {}
    await catalog.know(work.tx, running)
    active: Counter[str] = Counter()
    for shape, leases in running.items():
        active[catalog.queue_of(shape)] += leases
    return [head for head in found if _is_open(work, head, active)]


def _is_open(work: Work, head: Head, active: Mapping[str, int]) -> bool:
    shape = work.catalog.shapes[head.shape]
    row = work.catalog.queues[shape.queue]
    full = row.max_running and active.get(shape.queue, 0) >= row.max_running
    return shape.rate is None and not full


def _victim(
    work: Work, fleet: _Fleet, head: Head, pending: list[Preemptible], left: list[Preemptible]
) -> Preemptible | None:
    """Returns the job to stop for this one; None if it can start, or one is stopping for it."""
    shape, catalog = work.catalog.shapes[head.shape], work.catalog
    able = {n for n, row in fleet.workers.items() if catalog.profile(row).runs(head.shape)}
    per_worker = catalog.per_worker(shape.queue)
    if any(fleet.slots[n] > 0 and fleet.rooms[n].fits(shape, per_worker) for n in able):
        return None
    for lease in pending:
        if lease.worker in able:
            pending.remove(lease)
            return None
    weight = catalog.weight(shape.queue)
    for lease in left:
        its = catalog.shapes[lease.shape]
        if lease.worker not in able or catalog.weight(its.queue) >= weight:
            continue
        if lease.rank <= head.rank:
            continue  # its adjustment ranks it first, so it would only take its place again
        room = fleet.rooms[lease.worker]
        room.take(its, -1)
        if room.fits(shape, per_worker):
            return lease
        room.take(its)
    return None


def _for(work: Work, head: Head) -> str:
    return f"{PREEMPTED} by job {head.job} of queue {work.catalog.queue_of(head.shape)}"


async def tell_to_stop(work: Work, why: Mapping[int, str]) -> int:
    """Marks the leases of these jobs that are still running, under the locks of the jobs."""
    jobs = sorted(why)
    if not jobs:
        return 0
    await work.tx.jobs.lock(jobs)
    leases = await work.tx.leases.lock(jobs)
    still = [job for job, row in leases.items() if row.state == RUNNING and row.reason is None]
    for job in still:
        await work.tx.leases.mark([job], RUNNING, why[job])
        work.effects.pokes.append(leases[job].worker)
    return len(still)
