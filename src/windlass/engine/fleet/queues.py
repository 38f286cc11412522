"""Queues by hand: pausing and resuming, and how much of them may run.

A paused queue keeps its jobs queued, and so does one that runs as much as it may. What runs of
a limited queue is counted in a row of `limits`, under whose lock claims are made; a lease says
which row it counts under, so that its end frees the slot whoever knows of the limit.
"""

from typing import NamedTuple

from windlass.domain.lifecycle.rank import queue_weight
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import QueueRow
from windlass.domain.values.errors import InvalidInput
from windlass.engine.transaction.unit_of_work import Work

MOST = 1_000_000  # of any limit
HEAVIEST = 1_000


class Paused(NamedTuple):
    """The queue's state after the call, and whether it changed it."""

    queue: str
    paused: bool
    applied: bool


class QueueLimits(NamedTuple):
    """How many jobs of a queue may run, 0 for any number; None leaves it as it is.

    `preempts` says whether its jobs may take the place of preemptible ones of lower queues.
    """

    max_running: int | None = None
    max_per_worker: int | None = None
    preempts: bool | None = None


class Limited(NamedTuple):
    """The queue after the call, and whether that changed it."""

    row: QueueRow
    applied: bool


def check_limits(limits: QueueLimits) -> None:
    """Raises `InvalidInput` for what cannot be a limit."""
    for name, value in (("max_running", limits[0]), ("max_per_worker", limits[1])):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and 0 <= value <= MOST):
            raise InvalidInput(name, f"an integer from 1 to {MOST}, or 0 for no limit", value)


def check_weight(weight: object) -> None:
    """Raises `InvalidInput` for what cannot be a share."""
    whole = isinstance(weight, int) and not isinstance(weight, bool)
    if not (whole and isinstance(weight, int) and 1 <= weight <= HEAVIEST):
        raise InvalidInput("weight", f"an integer from 1 to {HEAVIEST}", weight)


async def set_paused(work: Work, queue: str, paused: bool, actor: str | None) -> Paused:
    """Pauses or resumes a queue."""
    row = await _row(work, queue)
    if bool(row.paused) == paused:
        return Paused(queue, paused, False)
    await _put(work, row._replace(paused=int(paused)))
    word = "paused" if paused else "resumed"
    data = {"queue": queue, "paused": paused}
    work.say(EventKind.QUEUE, f"Queue {queue} {word}", actor=actor, data=data)
    return Paused(queue, paused, True)


async def set_limits(work: Work, queue: str, limits: QueueLimits, actor: str | None) -> Limited:
    """Sets how much of a queue may run; jobs that run already count, and continue."""
    row = await _row(work, queue)
    changed = row._replace(
        max_running=row.max_running if limits.max_running is None else limits.max_running,
        max_per_worker=(
            row.max_per_worker if limits.max_per_worker is None else limits.max_per_worker
        ),
        preempts=row.preempts if limits.preempts is None else int(limits.preempts),
    )
    if changed == row:
        return Limited(row, False)
    if changed.max_running:
        uncounted = await _uncounted(work, queue)  # leases are locked before limits
        name = ("", f"queue:{queue}")
        ids = await work.tx.limits.intern([(*name, changed.max_running)])
        changed = changed._replace(limit=ids[name])
        await _count(work, uncounted, changed.limit)
    await _put(work, changed)
    data = {
        "queue": queue, "max_running": changed.max_running,
        "max_per_worker": changed.max_per_worker, "preempts": bool(changed.preempts),
        "limit": changed.limit,
    }  # fmt: skip
    work.say(EventKind.QUEUE, f"Queue {queue} has other limits", actor=actor, data=data)
    return Limited(changed, True)


async def adopt_leases(work: Work) -> int:
    """Counts leases that were given out by servers which did not know of a limit yet."""
    adopted = 0
    for queue, row in sorted(work.catalog.queues.items()):
        if row.max_running and row.limit:
            jobs = await _uncounted(work, queue)
            await _count(work, jobs, row.limit)
            adopted += len(jobs)
    return adopted


async def set_namespace_weight(work: Work, namespace: str, weight: int, actor: str | None) -> bool:
    """Sets the share of a namespace, and returns whether that changed anything."""
    if (await work.tx.placement.namespace_weights()).get(namespace) == weight:
        return False
    await work.tx.placement.set_namespace_weight(namespace, weight)
    data = {"namespace": namespace, "weight": weight}
    work.say(EventKind.QUEUE, f"Namespace {namespace} weighs {weight}", actor=actor, data=data)
    work.effects.catalog = True
    return True


async def _put(work: Work, row: QueueRow) -> None:
    """Writes a queue; on this server claims follow it right after the commit."""
    await work.tx.catalog.put_queue(row)
    work.effects.queues.append(row)
    work.effects.catalog = True


async def _row(work: Work, queue: str) -> QueueRow:
    rows = {row.name: row for row in await work.tx.catalog.queues()}
    return rows.get(queue, QueueRow(queue, queue_weight(queue), 0))


async def _uncounted(work: Work, queue: str) -> list[int]:
    """Returns the jobs under leases that do not count under their queue's limit, locked."""
    await work.catalog.refresh(work.tx)  # a shape that is not known here may run as well
    return await work.tx.placement.unbound(work.catalog.shapes_in(queue))


async def _count(work: Work, jobs: list[int], limit: int) -> None:
    """Counts these leases under the limit of their queue."""
    if jobs:
        await work.tx.limits.lock([limit])
        await work.tx.placement.bind(jobs, limit)
        await work.tx.limits.bump({limit: len(jobs)})
