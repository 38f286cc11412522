"""The limits that apply to a job, and which of them hold it back: keys, queues, rates."""

from typing import Final
from urllib.parse import quote

from windlass.domain.access.rights import Action
from windlass.domain.explain.explanation import LimitEntry, Request, Step, Waiting
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.rates import opens_at, read_starts, room_in
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.records import JobRecord, QueueRow
from windlass.domain.values.quantities import format_moment, readable_duration
from windlass.engine.explain.reasons import Reasons, free_slot, together
from windlass.store.sql.places import Probe
from windlass.store.sql.transaction import ReadTx

HOLDERS: Final = 5  # jobs named as holding a limit
QUEUED: Final = State.QUEUED.code


async def limited(tx: ReadTx, view: JobRecord, shape: Shape, queue: QueueRow | None) -> Reasons:
    """Returns all limits of this job, and as reasons those that hold it back."""
    return together(
        [await _by_key(tx, view), await _by_queue(tx, queue), await _by_rate(tx, shape)]
    )


async def limits_of_shape(tx: ReadTx, shape: Shape, queue: QueueRow | None) -> list[LimitEntry]:
    """Returns the limits that apply to every job of this shape."""
    return [*(await _by_queue(tx, queue)).limits, *(await _by_rate(tx, shape)).limits]


async def _by_key(tx: ReadTx, view: JobRecord) -> Reasons:
    """Explains the limit of its concurrency key."""
    facts = view.facts
    row = (await tx.limits.read([facts.limit])).get(facts.limit) if facts.limit else None
    if row is None:
        return Reasons()
    holders = tuple(await tx.views.holders(row.id, HOLDERS))
    binding = row.leased >= row.max or await _is_parked(tx, view)
    entry = LimitEntry(
        kind="key", name=row.key, max=row.max, used=row.leased, binding=binding, holders=holders
    )
    if not binding:
        return Reasons(limits=(entry,))
    waiting = Waiting(kind="limit", text=entry.text)
    return Reasons((waiting,), tuple(map(free_slot, holders[:1])), (entry,))


async def _is_parked(tx: ReadTx, view: JobRecord) -> bool:
    """Returns True if earlier jobs of the same key take all slots."""
    facts = view.facts
    if view.state != QUEUED or view.not_before:
        return False
    found = await tx.places.ready([Probe(facts.shape, facts.rank, facts.id, 1)])
    return [ticket.job for ticket in found] != [facts.id]


async def _by_queue(tx: ReadTx, queue: QueueRow | None) -> Reasons:
    """Explains how many jobs of its queue may run at once."""
    if queue is None or not queue.max_running or queue.limit is None:
        return Reasons()
    row = (await tx.limits.read([queue.limit])).get(queue.limit)
    if row is None:
        return Reasons()
    entry = LimitEntry(
        kind="queue", name=queue.name, max=row.max, used=row.leased,
        binding=row.leased >= row.max,
    )  # fmt: skip
    if not entry.binding:
        return Reasons(limits=(entry,))
    most = row.leased + 1
    step = Step(
        action="raise_queue_limit",
        text=f"wait for a job of queue {queue.name} to end, or let {most} run at once",
        queue=queue.name, max=most,
        command=f"windlass queues limit {queue.name} --max-running {most}",
        request=Request(
            method="POST", path=f"/api/v1/queues/{quote(queue.name, safe='')}/limits",
            body={"max_running": most}, needs=Action.MANAGE_QUEUES,
        ),
    )  # fmt: skip
    return Reasons((Waiting(kind="queue_limit", text=entry.text),), (step,), (entry,))


async def _by_rate(tx: ReadTx, shape: Shape) -> Reasons:
    """Explains how many jobs with its rate's key may start in a period."""
    rate = shape.rate
    if rate is None:
        return Reasons()
    row = await tx.views.rate(shape.namespace, rate.key)
    starts = [] if row is None else read_starts(row.starts)
    room = room_in(rate, starts, tx.now)
    entry = LimitEntry(
        kind="rate", name=f"{rate.key}, {rate.max} in {readable_duration(rate.per_ms)}",
        max=rate.max, used=rate.max - room, binding=room == 0,
    )  # fmt: skip
    if room:
        return Reasons(limits=(entry,))
    until = format_moment(opens_at(rate, starts))
    left = readable_duration(opens_at(rate, starts) - tx.now)
    text = f"the rate {entry.name}: the next job may start in {left}"
    step = Step(action="wait", text=f"wait until {until}", until=until)
    return Reasons((Waiting(kind="rate", text=text, until=until),), (step,), (entry,))
