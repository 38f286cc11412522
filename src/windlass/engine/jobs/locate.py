"""Takes jobs out of the places where they wait.

The callers have locked the jobs. Even without that lock jobs only move forward, so searching the
places in forward order, one after another, finds every job.
"""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import JobFacts, Lease, Ticket, Wait
from windlass.domain.values.ids import JobId
from windlass.engine.transaction.unit_of_work import Work

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code


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
    leases = await work.tx.leases.lock(list(left)) if left else {}
    return Located(withdrawn, [(left[JobId(job)], lease) for job, lease in sorted(leases.items())])
