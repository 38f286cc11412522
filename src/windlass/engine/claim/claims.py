"""Claims: leases ready jobs to workers."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from windlass.domain.lifecycle.states import ASSIGNED, QUEUED, RUNNING
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.matching.suspects import NOBODY, Company
from windlass.domain.values.ids import PER_EPOCH
from windlass.engine.claim.search import Given, Search
from windlass.engine.claim.suspects import mark_suspects
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Profile
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Assignment

Claimed: TypeAlias = dict[int, list[Assignment]]  # by worker


class Claimant(NamedTuple):
    """A worker that asks for jobs, and what it can run."""

    worker: int
    incarnation: int
    want: int
    profile: Profile
    prefetch: bool
    company: Company = NOBODY  # what it holds already


async def claim(work: Work, bounds: Bounds, seekers: Sequence[Claimant]) -> Claimed:
    """Leases the best ready jobs to these workers, as many as they want."""
    groups: dict[tuple[str, bool], list[Claimant]] = {}
    for seeker in seekers:
        groups.setdefault((seeker.profile.digest, seeker.prefetch), []).append(seeker)
    work.effects.count("assignment_attempts", sum(seeker.want for seeker in seekers))
    if len(groups) > 1 and work.catalog.any_choosy:
        return await _claim_by_preference(work, bounds, list(groups.values()))
    claimed: Claimed = {}
    for alike in groups.values():
        await _claim_alike(work, bounds, alike, claimed)
    return claimed


async def _claim_by_preference(
    work: Work, bounds: Bounds, groups: Sequence[list[Claimant]]
) -> Claimed:
    """Does the same if jobs prefer certain workers: those are served first, but nothing waits."""
    claimed: Claimed = {}
    closed: set[int] = set()
    for n, alike in enumerate(groups):
        others = [group[0].profile for group in groups[n + 1 :]]
        leave = _leaves_to(alike[0].profile, others)
        closed |= await _claim_alike(work, bounds, alike, claimed, leave)
    for alike in groups:
        rest = [seeker for seeker in _unserved(alike, claimed) if seeker.worker not in closed]
        if rest:
            await _claim_alike(work, bounds, rest, claimed)
    return claimed


def _leaves_to(mine: Profile, others: Sequence[Profile]) -> Callable[[int], bool]:
    def leave(shape: int) -> bool:
        liking = mine.liking(shape)
        return any(other.runs(shape) and other.liking(shape) < liking for other in others)

    return leave


def _unserved(alike: Sequence[Claimant], claimed: Claimed) -> list[Claimant]:
    """Returns these workers with the number of jobs they still want."""
    rest: list[Claimant] = []
    for seeker in alike:
        got, company = len(claimed.get(seeker.worker, ())), seeker.company
        if got < seeker.want:
            company = company._replace(held=company.held + got)
            rest.append(seeker._replace(want=seeker.want - got, company=company))
    return rest


async def _claim_alike(
    work: Work,
    bounds: Bounds,
    alike: list[Claimant],
    claimed: Claimed,
    leave: Callable[[int], bool] | None = None,
) -> set[int]:
    """Adds to `claimed` the jobs for workers with the same profile.

    Returns the workers that take nothing more in this transaction.
    """
    want = sum(seeker.want for seeker in alike)
    profile = alike[0].profile
    age = bounds.age_ms(work.now)
    if age is None or (bounds.shared and age > max(work.config.bound_ttl_ms, bounds.patience_ms)):
        await _refresh(work, bounds)
    demands = [Demand(s.worker, s.incarnation, s.want, s.profile.runs, s.company) for s in alike]
    search = Search(work, bounds, profile, demands, leave)
    await _search(work, search, alike[0].prefetch, claimed)
    short = len(search.given) < want
    if short and bounds.shared and (bounds.age_ms(work.now) or 0) >= bounds.patience_ms:
        await _refresh(work, bounds)
        rest = [d for d in _rest(demands, search.given) if d.worker not in search.closed]
        if not rest:
            return search.closed
        again = Search(work, bounds, profile, rest, leave)
        await _search(work, again, alike[0].prefetch, claimed)
        return search.closed | again.closed
    return search.closed


async def _search(work: Work, search: Search, prefetch: bool, claimed: Claimed) -> None:
    given = await search.run()
    await _grant(work, given, prefetch, claimed)
    if search.any_suspects:
        await mark_suspects(work, given)
    indices = await search.settle()
    if indices:
        for worker, mine in claimed.items():
            claimed[worker] = [
                replace(it, indices=indices[it.job]) if it.job in indices else it for it in mine
            ]


def _rest(demands: list[Demand], given: Given) -> list[Demand]:
    got: dict[int, int] = {}
    for _, demand in given:
        got[demand.worker] = got.get(demand.worker, 0) + 1
    return [
        d._replace(want=d.want - n, company=d.company._replace(held=d.company.held + n))
        for d in demands
        for n in (got.get(d.worker, 0),)
    ]


async def _refresh(work: Work, bounds: Bounds) -> None:
    if work.catalog.stale:
        await work.catalog.refresh(work.tx)
    heads = await work.tx.places.heads()
    await work.catalog.know(work.tx, (head.shape for head in heads))
    bounds.replace(heads, work.now)


async def _grant(work: Work, given: Given, prefetch: bool, claimed: Claimed) -> None:
    if not given:
        return
    config = work.config
    if prefetch:
        state, slack = ASSIGNED, config.timeouts.assigned_ms
    else:
        state, slack = RUNNING, config.term_grace_ms + config.heartbeat_interval_ms
    epoch = work.catalog.epoch * PER_EPOCH  # above 0 after a backup was restored
    granted = await work.tx.leases.grant(given, state, work.now, slack, epoch + 1 if epoch else 0)
    _record(work, given, granted, prefetch, claimed)
    limited = Counter([ticket.limit for ticket, _ in given if ticket.limit])
    if limited:
        await work.tx.limits.bump(limited)
    work.effects.count("assignment_successes", len(granted))
    if config.fair_share:
        for shape, jobs in Counter(ticket.shape for ticket, _ in given).items():
            work.catalog.shares.take(work.catalog.namespace_of(shape), jobs)


def _record(
    work: Work, given: Given, granted: Sequence[Assignment], prefetch: bool, claimed: Claimed
) -> None:
    """Adds the granted jobs to `claimed` and records both transitions; no state is skipped."""
    steps = ((QUEUED, ASSIGNED),) if prefetch else ((QUEUED, ASSIGNED), (ASSIGNED, RUNNING))
    holders: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    counts: dict[tuple[int, int | None], int] = {}
    last = 0
    for (ticket, demand), assignment in zip(given, granted, strict=True):
        worker = demand.worker
        if worker != last:
            last = worker
            jobs, attempts = holders.setdefault((worker, demand.incarnation), ([], []))
            mine = claimed.setdefault(worker, [])
        mine.append(assignment)
        jobs.append(ticket.job)
        attempts.append(assignment.attempt)
        kind = ticket.shape, ticket.workflow
        counts[kind] = counts.get(kind, 0) + 1
    for (worker, incarnation), (jobs, attempts) in holders.items():
        work.move_all(jobs, attempts, steps, worker, incarnation)
    for (shape, workflow), count in counts.items():
        for source, to in steps:
            work.count_moves(shape, workflow, source, to, count)
