"""How a job gets from "may run" to a place: due, parked or ready.

Everything that makes a job queued comes through here, so a limit is never passed by.
"""

from collections.abc import Iterable, Sequence

from windlass.domain.records import Due, Ticket
from windlass.domain.states import State
from windlass.engine.work import Work

QUEUED = State.QUEUED.code
RETRYING = State.RETRYING.code


async def make_ready(work: Work, tickets: Sequence[Ticket]) -> None:
    """Put queued jobs where workers find them; those beyond their limit are parked."""
    free = [ticket for ticket in tickets if not ticket.limit]
    limited = [ticket for ticket in tickets if ticket.limit]
    if limited:
        free += await _admit(work, limited)
    if free:
        await work.tx.places.add_ready(free)
        work.effects.arrive(free)


async def plan_for(work: Work, at: int, state: int, ticket: Ticket) -> None:
    """Keep a job back until `at`."""
    await work.tx.places.add_due([Due(at, ticket.job, state, ticket)])
    work.effects.fall_due(at)


async def promote_due(work: Work, count: int) -> int:
    """Move up to `count` jobs whose time has come; how many were moved."""
    rows = await work.tx.places.pull_due(work.now, count)
    if not rows:
        return 0
    await work.catalog.know(work.tx, (row.ticket.shape for row in rows))
    for row in rows:
        if row.state == RETRYING:
            ticket = row.ticket
            work.move(
                row.job, ticket.shape, ticket.workflow, ticket.attempt, RETRYING, QUEUED,
                "Backoff over",
            )  # fmt: skip
    await make_ready(work, [row.ticket for row in rows])
    return len(rows)


async def _admit(work: Work, tickets: Sequence[Ticket]) -> list[Ticket]:
    """Those the limits leave room for; the others are parked."""
    limits = await work.tx.limits.lock(sorted({ticket.limit for ticket in tickets}))
    room: dict[tuple[int, int], int] = {}
    admitted: list[Ticket] = []
    parked: list[Ticket] = []
    for ticket in sorted(tickets, key=lambda t: (t.limit, t.rank, t.job)):
        key = ticket.limit, ticket.shape
        if key not in room:
            limit = limits[ticket.limit]
            standing = await work.tx.places.count_ready(*key)
            room[key] = limit.max - limit.leased - standing
        if room[key] > 0:
            room[key] -= 1
            admitted.append(ticket)
        else:
            parked.append(ticket)
    if parked:
        await work.tx.places.add_parked(parked)
    return admitted


async def free_limits(work: Work, freed: Iterable[int]) -> None:
    """Slots under these limits are free again: move the best parked jobs up.

    `freed` names a limit once for each slot.
    """
    deltas: dict[int, int] = {}
    for limit in freed:
        deltas[limit] = deltas.get(limit, 0) - 1
    if not deltas:
        return
    await work.tx.limits.lock(sorted(deltas))
    await work.tx.limits.bump(deltas)
    for limit in sorted(deltas):
        await refill(work, limit)


async def refill(work: Work, limit: int) -> None:
    """Bring `ready` up to what the limit allows, per shape, from the parked jobs."""
    row = (await work.tx.limits.lock([limit]))[limit]
    room = row.max - row.leased
    if room <= 0:
        return
    by_shape: dict[int, list[Ticket]] = {}
    for ticket in await work.tx.places.best_parked(limit, room):
        by_shape.setdefault(ticket.shape, []).append(ticket)
    for shape, tickets in sorted(by_shape.items()):
        await work.catalog.know(work.tx, [shape])
        standing = await work.tx.places.count_ready(limit, shape)
        chosen = tickets[: max(0, room - standing)]
        if chosen:
            await work.tx.places.unpark(chosen)
            await work.tx.places.add_ready(chosen)
            work.effects.arrive(chosen)
