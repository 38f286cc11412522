"""Keeps ranks right when priorities, or the jobs that wait for a job, change.

A job's rank is the best of its own and those of the open jobs that wait for it. A submission is
ranked in one pass as it is written (`domain/lifecycle/rank.py`). Later changes (an adjustment, the
end of a waiting job, a successor) are passed on by a cascade: it recomputes the ranks of the
changed job's dependencies, then of theirs, and so on. Cascades survive a crash, and each reads the
current state, so the last one leaves everything right.

A change by hand is an adjustment beside the base, so that both stay visible.
"""

from collections.abc import Iterable, Sequence

import msgspec

from windlass.domain.job.job import LENDS, decode_spec
from windlass.domain.lifecycle.rank import checked_level, level, levels_gained, rank
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Cascade, CascadeKind, Due, JobFacts
from windlass.domain.values.errors import Conflict, existing
from windlass.domain.values.ids import JobId
from windlass.engine.jobs.dependents import newest_of
from windlass.engine.jobs.places import Located, withdraw
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.unit_of_work import Work

CHUNK = 1_000  # dependents in one row
MAX_JOBS = 500  # jobs per step
_OFFSET = 1 << 20  # more than any job may wait for
_ids = msgspec.json.Decoder(list[int]).decode


def pass_on(work: Work, jobs: Sequence[int]) -> None:
    """Records a cascade that recomputes the ranks of the jobs that these wait or waited for."""
    for start in range(0, len(jobs), CHUNK):
        some = msgspec.json.encode(list(jobs[start : start + CHUNK])).decode()
        work.cascades.append(Cascade(0, None, None, CascadeKind.INHERIT, 0, some))


def pass_on_ended(work: Work, ended: Iterable[tuple[int, int]]) -> None:
    """Does the same for jobs, with their flags, that ended while they waited."""
    pass_on(work, [job for job, flags in ended if flags & LENDS])


def inherited_levels(catalog: Catalog, facts: JobFacts) -> float:
    """Returns by how many levels its waiting dependents raise an open job."""
    if not facts.is_open:
        return 0.0
    total = level(catalog.weight(catalog.queue_of(facts.shape)), facts.base, facts.adjustment)
    interval = catalog.interval_ms
    return levels_gained(rank(facts.age_from, total, interval), facts.rank, interval)


async def inherit_chunk(work: Work, cascade: Cascade) -> tuple[int | None, int]:
    """Runs one step; returns where the next one begins (None: done), and how many it ranked."""
    if work.inline:
        # If cascades share a transaction, earlier ones may still be about to queue jobs.
        await work.slots.settle()
    sources = _ids(cascade.reason or "[]")
    place, offset = divmod(cascade.cursor, _OFFSET)
    taken, wanted = await _waited_for(work, sources[place : place + MAX_JOBS])
    some = wanted[offset : offset + MAX_JOBS]
    pass_on(work, [fact.id for fact in await refresh(work, some)])
    offset += MAX_JOBS
    if offset >= len(wanted):
        place, offset = place + taken, 0
    return (place * _OFFSET + offset if place < len(sources) else None), max(taken, len(some))


async def _waited_for(work: Work, jobs: Sequence[int]) -> tuple[int, list[int]]:
    """Returns the open jobs, ascending, that the first of these jobs wait for, with successors.

    Also returns how many jobs the first are: as many as together wait for at most `MAX_JOBS`
    jobs, or one.
    """
    bodies = await work.tx.jobs.specs(sorted(jobs))
    taken, named = 0, set[int]()
    for job in jobs:
        spec = None if job not in bodies else decode_spec(bodies[job])
        refs = () if spec is None else (*spec.after, *spec.after_any)
        if taken and len(named) + len(refs) > MAX_JOBS:
            break
        taken += 1
        named.update(ref for ref in refs if isinstance(ref, int))
    newest = await newest_of(work.tx, named)
    return taken, sorted({fact.id for fact in newest.values() if fact.is_open})


async def refresh(work: Work, jobs: Sequence[int]) -> list[JobFacts]:
    """Recomputes the ranks of these jobs; returns those whose rank changed."""
    if not jobs:
        return []
    facts = await work.tx.jobs.lock(sorted(jobs))
    open_jobs = [fact for fact in facts.values() if fact.is_open]
    await work.catalog.know(work.tx, {fact.shape for fact in open_jobs})
    places = await ranks_of(work, open_jobs)
    changed = [fact for fact in open_jobs if places[fact.id] != fact.rank]
    for fact in changed:
        await move_to(work, fact, places[fact.id])
    return changed


async def ranks_of(work: Work, facts: Sequence[JobFacts]) -> dict[int, int]:
    """Returns the rank of each locked job: its own, or the best of the jobs that wait for it.

    A job that lends its rank is marked, so that its end is passed on. If it ends before we can lock
    it, we start again.
    """
    own = {fact.id: _own_rank(work, fact) for fact in facts}
    while True:
        best = await _best_waiting(work, sorted(own))
        lenders = {job: one for job, one in best.items() if one.rank < own[JobId(job)]}
        if await _mark(work, lenders.values()):
            return own | {job: one.rank for job, one in lenders.items()}


async def _mark(work: Work, lenders: Iterable[JobFacts]) -> bool:
    """Marks jobs that are not marked yet; returns False if one has changed."""
    unmarked = {fact.id: fact for fact in lenders if not fact.flags & LENDS}
    if not unmarked:
        return True
    now = await work.tx.jobs.lock(sorted(unmarked))
    for job, fact in unmarked.items():
        if job not in now or now[job].state or now[job].rank != fact.rank:
            return False
        await _set(work, now[job], fact.rank)
    return True


def _own_rank(work: Work, fact: JobFacts) -> int:
    """Returns the job's rank if no job waited for it."""
    weight = work.catalog.weight(work.catalog.queue_of(fact.shape))
    priority = level(weight, fact.base, fact.adjustment)
    return rank(fact.age_from, priority, work.catalog.interval_ms)


async def _best_waiting(work: Work, jobs: Sequence[int]) -> dict[int, JobFacts]:
    """Returns the best open job that waits for each of these; prefers a marked one."""
    best: dict[int, JobFacts] = {}
    left, chunk = list(jobs), 0
    while left:
        edges = await work.tx.jobs.dependents(left, chunk)
        facts = await work.tx.jobs.read(sorted({e >> 1 for some in edges.values() for e in some}))
        for job, some in edges.items():
            found = (facts.get(edge >> 1) for edge in some)
            waiting = [fact for fact in found if fact is not None and fact.is_open]
            if job in best:
                waiting.append(best[job])
            if waiting:
                best[job] = min(waiting, key=lambda f: (f.rank, not f.flags & LENDS, f.id))
        left = [job for job, some in edges.items() if len(some) >= CHUNK]
        chunk += 1
    return best


async def _set(work: Work, fact: JobFacts, place: int) -> None:
    flags = fact.flags | LENDS
    await work.tx.jobs.set_priority(fact.id, fact.adjustment, fact.age_from, place, flags)


async def move_to(work: Work, fact: JobFacts, place: int) -> Located:
    """Gives a locked job another rank, wherever it waits; its state does not change.

    Its dependencies may then inherit the rank, so its end must be passed on.
    """
    found = await withdraw(work, [fact])
    await _set(work, fact, place)
    await _put_back(work, found, place)
    return found


async def _put_back(work: Work, found: Located, place: int) -> None:
    """Puts it back into the same place, at the new rank."""
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
            work.slots.rise(ticket)


async def adjust(work: Work, job: int, adjustment: int, actor: str | None) -> bool:
    """Sets a job's adjustment: it moves to its new rank; returns False if it had it already."""
    facts = existing("job", job, (await work.tx.jobs.lock([job])).get(job))
    if facts.state is not None:
        state = STATE_BY_CODE[facts.state]
        raise Conflict("job_ended", f"job {job} has ended: it is {state}")
    if facts.adjustment == adjustment:
        return False
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
    return True
