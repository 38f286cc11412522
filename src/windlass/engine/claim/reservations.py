"""Reserves workers for large jobs, so that they do not starve behind small ones.

Once per round the scheduling loop checks the best job of each shape with resources. If it has
waited long enough and could fit on a worker, but finds no room on any, it gets a reservation: one
worker holds back the resources it needs from all other shapes (`domain/matching/room.py`) until it
starts. A reservation only holds back; losing one, or keeping one too long, breaks nothing.
"""

from collections.abc import Iterable, Mapping, Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.matching.matching import amount_of
from windlass.domain.matching.room import Room, needs_of
from windlass.domain.matching.shapes import Shape
from windlass.domain.matching.workers import in_good_standing
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Reservation, Worker
from windlass.domain.values.ids import JobId, ShapeId
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.places import Head

QUEUED = State.QUEUED.code
MAX_PER_ROUND = 20  # reservations made in one round


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
