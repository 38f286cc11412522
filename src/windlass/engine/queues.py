"""Queues by hand: pausing and resuming. A paused queue keeps its jobs queued."""

from typing import NamedTuple

from windlass.domain.events import EventKind
from windlass.domain.rank import queue_weight
from windlass.domain.records import QueueRow
from windlass.engine.work import Work


class Paused(NamedTuple):
    """The queue's state after the call, and whether it changed it."""

    queue: str
    paused: bool
    applied: bool


async def set_paused(work: Work, queue: str, paused: bool, actor: str | None) -> Paused:
    """Pause or resume a queue."""
    rows = {row.name: row for row in await work.tx.catalog.queues()}
    row = rows.get(queue, QueueRow(queue, queue_weight(queue), 0))
    if bool(row.paused) == paused:
        return Paused(queue, paused, False)
    await work.tx.catalog.put_queue(row._replace(paused=int(paused)))
    word = "paused" if paused else "resumed"
    data = {"queue": queue, "paused": paused}
    work.say(EventKind.QUEUE, f"Queue {queue} {word}", actor=actor, data=data)
    work.effects.catalog = True
    return Paused(queue, paused, True)
