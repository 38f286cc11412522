"""S13 beyond keys and slots: resources, `apart`, limits of queues, rates.

The log says what workers held and what ran of each queue. What a worker has comes from the log
or, since an agent may report new metadata, from its row.
"""

from bisect import insort

import msgspec

from windlass.domain.lifecycle.states import State
from windlass.domain.matching.indices import read_indices
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.matching.rates import room_in
from windlass.domain.matching.room import Room
from windlass.domain.matching.shapes import Shape, is_gated
from windlass.domain.rows.events import Event
from windlass.domain.values.ids import ShapeId, WorkerId
from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex
from windlass.engine.verify.past import ACTIVE_CODES, JobPast
from windlass.engine.verify.replay import Replay

ASSIGNED = State.ASSIGNED.code


def count_holdings(replay: Replay, job: JobPast, event: Event) -> None:
    """Updates what is held before a transition is applied."""
    enters = event.to in ACTIVE_CODES and event.source not in ACTIVE_CODES
    leaves = event.source in ACTIVE_CODES and event.to not in ACTIVE_CODES
    row = replay.known.jobs.get(event.job)
    if row is None or enters == leaves:
        return
    holdings, number = replay.past.holdings, row.facts.shape
    shape = replay.known.shapes.get(number)
    if shape is None:
        return
    worker = event.worker if enters else job.worker
    holdings.take(worker, number, shape.queue, 1 if enters else -1)
    if enters and shape.rate is not None:
        starts = holdings.starts.setdefault((shape.namespace, shape.rate.key), [])
        insort(starts, event.at)


def check_placement(replay: Replay, job: JobPast, event: Event) -> None:
    """S13: a worker has room for a job, its queue for one more, and its rate for a start."""
    row = replay.known.jobs.get(event.job)
    shape = None if row is None else replay.known.shapes.get(row.facts.shape)
    if event.to == ASSIGNED and shape is not None:
        for message in _excesses(replay, shape, event):
            replay.found.add("S13", message, event.job, event.seq)
    count_holdings(replay, job, event)


def _excesses(replay: Replay, shape: Shape, event: Event) -> list[str]:
    holdings, found = replay.past.holdings, []
    queue = holdings.queue(shape.queue)
    if queue.max_running and queue.active >= queue.max_running:
        found.append(
            f"number {queue.active + 1} of queue {shape.queue}, {queue.max_running} may run"
        )
    rate = shape.rate
    if rate is not None:
        starts = holdings.starts.get((shape.namespace, rate.key), [])
        if not room_in(rate, starts, event.at):
            found.append(f"more than {rate.max} starts in {rate.per_ms} ms under rate {rate.key}")
    if is_gated(shape) or queue.max_per_worker:
        lacking = _lacking(replay, shape, event.worker, queue.max_per_worker)
        if lacking is not None:
            found.append(f"assigned to worker {event.worker}, which lacks room: {lacking}")
    return found


def _lacking(replay: Replay, shape: Shape, worker: int, per_worker: int) -> str | None:
    """Returns what the worker lacks both by the log and by its current metadata."""
    row, logged = replay.known.workers.get(WorkerId(worker)), replay.past.worker(worker)
    if row is None:
        return None
    lacking = None
    for dynamic, static in ((logged.dynamic, logged.static), (row.dynamic, row.static)):
        merged = merge_metadata(
            msgspec.json.decode(row.dynamic if dynamic is None else dynamic),
            msgspec.json.decode(row.static if static is None else static),
        )
        room = Room(merged)
        for number, jobs in replay.past.holdings.held(worker).items():
            room.take(replay.known.shapes[ShapeId(number)], jobs)
        lack = room.lacks(shape, per_worker)
        if lack is None:
            return None
        lacking = lack.text
    return lacking


def check_indices(known: SnapshotIndex, found: Findings) -> None:
    """S13: no two leases of one worker hold the same index of a resource."""
    holders: dict[tuple[int, str, str], int] = {}
    for lease in known.snapshot.leases:
        for resource, names in read_indices(lease.indices).items():
            for name in names:
                other = holders.setdefault((lease.worker, resource, name), lease.job)
                if other != lease.job:
                    said = f"holds index {name} of {resource}, as job {other} does"
                    found.add("S13", f"{said}, on worker {lease.worker}", lease.job)
