"""Changes priorities by hand: an adjustment beside the base, so that both stay visible."""

from typing import NamedTuple

from windlass.domain.lifecycle.rank import checked_level
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import JobFacts
from windlass.domain.values.errors import Conflict, NotFound
from windlass.engine.jobs.inherit_rank import move_to, pass_on, ranks_of
from windlass.engine.transaction.unit_of_work import Work


class Adjusted(NamedTuple):
    """A job's priorities after the call, and whether it changed them."""

    job: int
    base: int
    adjustment: int
    effective: int
    applied: bool


async def adjust(work: Work, job: int, adjustment: int, actor: str | None) -> Adjusted:
    """Sets a job's adjustment; wherever it waits, it moves to its new rank."""
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None:
        raise NotFound("job", job)
    if facts.state is not None:
        state = STATE_BY_CODE[facts.state]
        raise Conflict("job_ended", f"job {job} has ended: it is {state}")
    if facts.adjustment == adjustment:
        return _answer(facts, False)
    await work.catalog.know(work.tx, [facts.shape])
    weight = work.catalog.weight(work.catalog.queue_of(facts.shape))
    checked_level(weight, facts.base, adjustment, "adjustment")
    adjusted = facts._replace(adjustment=adjustment)
    places = await ranks_of(work, [adjusted])
    found = await move_to(work, adjusted, places[job])
    if any(gone.wait is not None for gone in found.withdrawn):
        pass_on(work, [job])
    work.say(
        EventKind.PRIORITY, f"Adjustment {facts.adjustment} → {adjustment}", job=job, actor=actor,
        data={"adjustment": adjustment},
    )  # fmt: skip
    return _answer(adjusted, True)


def _answer(facts: JobFacts, applied: bool) -> Adjusted:
    effective = facts.base + facts.adjustment
    return Adjusted(facts.id, facts.base, facts.adjustment, effective, applied)
