"""Moves a job that may run to its place: due, parked or ready.

Every job that becomes queued comes through here, so no limit is bypassed.
"""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import Due, Ticket
from windlass.engine.transaction.unit_of_work import Work

QUEUED = State.QUEUED.code
RETRYING = State.RETRYING.code
SUSPENDED = State.SUSPENDED.code
OVER = {RETRYING: "Backoff over", SUSPENDED: "Its wait is over"}


async def make_ready(work: Work, tickets: Sequence[Ticket]) -> None:
    """Puts queued jobs where workers find them; parks those beyond their limit."""
    free = [ticket for ticket in tickets if not ticket.limit]
    work.slots.admit(ticket for ticket in tickets if ticket.limit)
    if free:
        await work.tx.places.add_ready(free)
        work.effects.arrive(free)


async def plan_for(work: Work, at: int, state: int, ticket: Ticket) -> None:
    """Holds a job back until `at`."""
    await work.tx.places.add_due([Due(at, ticket.job, state, ticket)])
    work.effects.fall_due(at)


async def promote_due(work: Work, count: int) -> int:
    """Moves up to `count` jobs that are due; returns how many."""
    rows = await work.tx.places.pull_due(work.now, count)
    if not rows:
        return 0
    await work.catalog.know(work.tx, (row.ticket.shape for row in rows))
    for row in rows:
        if row.state in OVER:
            ticket = row.ticket
            work.move(
                row.job, ticket.shape, ticket.workflow, ticket.attempt, row.state, QUEUED,
                OVER[row.state],
            )  # fmt: skip
    await make_ready(work, [row.ticket for row in rows])
    return len(rows)
