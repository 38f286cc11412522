"""Priorities by hand: an adjustment beside the base, so that it stays visible."""

from typing import NamedTuple

from windlass.domain.errors import Conflict, NotFound
from windlass.domain.events import EventKind
from windlass.domain.rank import checked_level, rank
from windlass.domain.records import Due, JobFacts
from windlass.domain.states import STATE_BY_CODE
from windlass.engine.locate import Found, withdraw
from windlass.engine.work import Work


class Adjusted(NamedTuple):
    """A job's priorities after the call, and whether it changed them."""

    job: int
    base: int
    adjustment: int
    effective: int
    applied: bool


async def adjust(work: Work, job: int, adjustment: int, actor: str | None) -> Adjusted:
    """Set a job's adjustment; wherever it waits, it moves to its new rank."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None:
        raise NotFound("job", job)
    if facts.state:
        state = STATE_BY_CODE[facts.state]
        raise Conflict("job_ended", f"expected job {job} to be open, it is {state}")
    if facts.adjustment == adjustment:
        return _answer(facts, False)
    await work.catalog.know(work.tx, [facts.shape])
    weight = work.catalog.weight(work.catalog.queue_of(facts.shape))
    place = rank(
        facts.age_from,
        checked_level(weight, facts.base, adjustment, "adjustment"),
        work.catalog.interval_ms,
    )
    found = await withdraw(work, [facts])
    await work.tx.jobs.set_priority(job, adjustment, facts.age_from, place)
    await _put_back(work, found, place)
    work.say(
        EventKind.PRIORITY, f"Adjustment {facts.adjustment} → {adjustment}", job=job, actor=actor,
        data={"adjustment": adjustment},
    )  # fmt: skip
    return _answer(facts._replace(adjustment=adjustment), True)


async def _put_back(work: Work, found: Found, place: int) -> None:
    """Back to the same place, at the new rank: its state has not changed."""
    places = work.tx.places
    for gone in found.withdrawn:
        ticket = gone.ticket._replace(rank=place)
        if gone.wait is not None:
            await places.add_waits([gone.wait._replace(ticket=ticket)])
        elif gone.due_at:
            await places.add_due([Due(gone.due_at, ticket.job, gone.state, ticket)])
        elif gone.was_ready:
            await places.add_ready([ticket])
            work.effects.arrive([ticket])
        else:
            await places.add_parked([ticket])
            # Whoever freed a slot meanwhile passed it over.
            work.slots.refill(ticket.limit)


def _answer(facts: JobFacts, applied: bool) -> Adjusted:
    effective = facts.base + facts.adjustment
    return Adjusted(facts.id, facts.base, facts.adjustment, effective, applied)
