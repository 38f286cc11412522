"""Moves jobs into the places where they wait, and takes them out.

Every job that becomes queued comes through here, so no limit is bypassed. The callers have locked
the jobs. Even without that lock jobs only move forward, so searching the places in forward order,
one after another, finds every job.
"""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.domain.lifecycle.states import BLOCKED, QUEUED, RETRYING, SUSPENDED
from windlass.domain.rows.records import Due, JobFacts, Lease, Ticket, Wait
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import pages

OVER = {RETRYING: "Backoff over", SUSPENDED: "Its wait is over"}


class Withdrawn(NamedTuple):
    """A job taken out of its place, and its state there."""

    facts: JobFacts
    state: int
    ticket: Ticket
    wait: Wait | None = None
    due_at: int = 0
    was_ready: bool = False


class Located(NamedTuple):
    """Where a set of open jobs was found: taken out of waiting places, or under a lease."""

    withdrawn: list[Withdrawn]
    leased: list[tuple[JobFacts, Lease]]


async def withdraw(work: Work, facts: Sequence[JobFacts]) -> Located:
    """Removes these open jobs from waits, due, parked and ready; locks leases."""
    left = {fact.id: fact for fact in sorted(facts)}
    places = work.tx.places
    withdrawn = [
        Withdrawn(left.pop(wait.job), BLOCKED, wait.ticket, wait)
        for wait in await places.take_waits(list(left))
    ]
    withdrawn += [
        Withdrawn(left.pop(due.job), due.state, due.ticket, None, due.at)
        for due in await places.take_due(list(left))
    ]
    withdrawn += [
        Withdrawn(left.pop(ticket.job), QUEUED, ticket)
        for ticket in await places.take_parked([fact for fact in left.values() if fact.limit])
    ]
    withdrawn += [
        Withdrawn(left.pop(ticket.job), QUEUED, ticket, None, 0, was_ready=True)
        for ticket in await places.take_ready(list(left.values()))
    ]
    return Located(withdrawn, await lock_leased(work, list(left.values())))


async def lock_leased(work: Work, facts: Sequence[JobFacts]) -> list[tuple[JobFacts, Lease]]:
    """Locks the leases of these jobs; returns the jobs that have one."""
    leases = await work.tx.leases.lock(sorted(fact.id for fact in facts)) if facts else {}
    return [(fact, leases[fact.id]) for fact in facts if fact.id in leases]


async def make_ready(work: Work, tickets: Sequence[Ticket]) -> None:
    """Puts queued jobs where workers find them; parks those beyond their limit."""
    free = [ticket for ticket in tickets if not ticket.limit]
    work.slots.admit(ticket for ticket in tickets if ticket.limit)
    for page in pages(free):
        await work.tx.places.add_ready(page)
        work.effects.arrive(page)


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
