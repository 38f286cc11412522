"""Makes room for jobs that find none: reservations for large ones, preemption for urgent ones.

Both run once per round of the scheduling loop.

A reservation keeps large jobs from starving behind small ones. If the best job of a shape with
resources has waited long enough and could fit on a worker, but finds no room on any, one worker
holds back the resources it needs from all other shapes (`domain/matching/room.py`) until it starts.
A reservation only holds back; losing one, or keeping one too long, breaks nothing.

Preemption, if enabled: a job of a higher queue takes the worker of a lower one. Both sides opt in:
the queue that preempts, and the job that may be preempted. If only preemptible jobs of lower queues
keep one from a worker, we tell the youngest of these that ranks behind it to stop. Like a canceled
job it has a grace period to save its work; then it is queued again, without blame.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from windlass.domain.lifecycle.states import QUEUED, RUNNING
from windlass.domain.matching.matching import amount_of
from windlass.domain.matching.room import Room, needs_of
from windlass.domain.matching.shapes import Shape
from windlass.domain.matching.workers import in_good_standing
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Reservation, Worker
from windlass.domain.values.ids import JobId, ShapeId
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.placement import Preemptible
from windlass.store.sql.places import Head

MAX_PER_ROUND = 20  # reservations made in one round
PREEMPTED = "preempted"


async def review(work: Work) -> int:
    """Ends reservations that are over and makes new ones; returns how many changed."""
    after = work.config.reservation_after_ms
    kept = await work.tx.placement.reservations()
    if not after and not kept:
        return 0
    heads = {head.shape: head for head in await work.tx.places.heads()}
    await work.catalog.know(work.tx, heads)
    over = await _over(work, kept, heads) if kept else []
    if over:
        await work.tx.placement.release(over)
    left = [row for row in kept if row.worker not in over]
    made = await _make(work, left, heads.values()) if after else 0
    if over or made:
        work.effects.catalog = True
    return len(over) + made


async def _over(work: Work, kept: Sequence[Reservation], heads: Mapping[int, Head]) -> list[int]:
    """Returns workers whose reservation is over: the job is running or gone, or the worker is
    gone.
    """
    jobs = [row.job for row in kept]
    facts = await work.tx.jobs.read(jobs)
    leased = await work.tx.leases.lock(jobs)
    workers = {row.id: row for row in await work.tx.workers.all()}
    over: list[int] = []
    for row in kept:
        fact, worker = facts.get(row.job), workers.get(row.worker)
        waits = fact is not None and fact.is_open and row.job not in leased
        useful = worker is not None and in_good_standing(worker.status) and row.shape in heads
        if not (waits and useful and worker and work.catalog.profile(worker).runs(row.shape)):
            over.append(row.worker)
    return over


async def _make(work: Work, kept: Sequence[Reservation], heads: Iterable[Head]) -> int:
    waiting = await _overdue(work, heads, {row.job for row in kept})
    if not waiting:
        return 0
    taken = {row.worker for row in kept}
    workers = [row for row in await work.tx.workers.all() if in_good_standing(row.status)]
    rooms = await rooms_of(work, workers)
    made = 0
    for head in waiting[:MAX_PER_ROUND]:
        worker = _choose(work, head.shape, [w for w in workers if w.id not in taken], rooms)
        if worker is None:
            continue
        row = Reservation(worker.id, JobId(head.job), ShapeId(head.shape), work.now)
        if await work.tx.placement.reserve(row):
            taken.add(worker.id)
            made += 1
            message = f"Worker {worker.name} is reserved for job {head.job}"
            work.say(EventKind.WORKER, message, worker=worker.id, data={"reserved_for": head.job})
    return made


async def _overdue(work: Work, heads: Iterable[Head], kept: set[int]) -> list[Head]:
    """Returns the best jobs of shapes with resources that have waited long enough, in order."""
    catalog, latest = work.catalog, work.now - work.config.reservation_after_ms
    large = [
        head
        for head in heads
        if catalog.shapes[head.shape].resources and not catalog.paused(head.shape)
    ]
    facts = await work.tx.jobs.read([head.job for head in large]) if large else {}
    old: list[Head] = []
    for head in sorted(large, key=lambda h: (h.rank, h.job)):
        fact = facts.get(head.job)
        if fact is None or fact.age_from > latest or head.job in kept:
            continue
        if await _queued_at(work, head.job) <= latest:
            old.append(head)
        if len(old) == MAX_PER_ROUND:
            break
    return old


async def _queued_at(work: Work, job: int) -> int:
    """Returns since when a job has waited for a worker."""
    times = [event.at for event in await work.tx.log.of_job(job) if event.to == QUEUED]
    return times[-1] if times else 0


async def rooms_of(
    work: Work, workers: Sequence[Worker], kept: Mapping[int, Reservation] | None = None
) -> dict[int, Room]:
    """Returns the remaining room of each of these workers, considering its reservation."""
    rooms: dict[int, Room] = {}
    for row in workers:
        own = None if kept is None else kept.get(row.id)
        shape = None if own is None else work.catalog.shapes.get(own.shape)
        rooms[row.id] = Room(work.catalog.profile(row).metadata, shape)
    loads = await work.tx.placement.loads(list(rooms))
    await work.catalog.know(work.tx, (load.shape for load in loads))
    for load in loads:
        rooms[load.worker].take(work.catalog.shapes[load.shape], load.leases)
    return rooms


def _choose(
    work: Work, number: int, workers: Sequence[Worker], rooms: Mapping[int, Room]
) -> Worker | None:
    """Returns the worker that lacks least for this shape; None if one has room, or none ever
    will.
    """
    shape, catalog = work.catalog.shapes[number], work.catalog
    able = [row for row in workers if catalog.profile(row).runs(number)]
    if any(rooms[row.id].lacks(shape) is None for row in able):
        return None
    return min(able, key=lambda row: _missing(work, row, shape, rooms[row.id]), default=None)


def _missing(work: Work, worker: Worker, shape: Shape, room: Room) -> tuple[float, int]:
    metadata = work.catalog.profile(worker).metadata
    shares = [
        max(0, amount - room.left(name)) / max(1, amount_of(metadata, name))
        for name, amount in needs_of(shape, metadata)
    ]
    return sum(shares), worker.id


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
