"""Reads what pool decisions are based on: the queue, the workers and the pools themselves.

How long waiting and running jobs will take is estimated before, outside of decisions.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.config import Config
from windlass.domain.matching.shapes import can_run
from windlass.domain.pools.pools import (
    LIVING,
    SERVING,
    Lifecycle,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    decode_pool,
    template_of,
)
from windlass.domain.pools.sizing import Fleet, Member, PoolNow
from windlass.domain.values.quantities import month_of
from windlass.engine.history.statistics import Kinds
from windlass.engine.pools.targets import KnownPool, Targets, WaitingWork, sort_workers
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.pools import HeldJob, Load
from windlass.store.sql.transaction import ReadTx

MAX_COUNTED: Final = 20_000  # ready jobs of one shape read in one transaction
ROUNDS_TO_END: Final = 4  # times of a member: told to stop, seen as stopped, ended, seen as ended
MAX_SURVEYED: Final = 1_000_000  # ready jobs of one shape; we count no further
SAMPLE: Final = 200  # jobs from each end of a shape that represent all of them
HELD_AT_ONCE: Final = 1_000


class Survey(NamedTuple):
    """What was collected before the transaction, because reading it takes a while.

    `waiting` is the expected work of the ready jobs, by shape; `running` the expected run time of
    each job that a worker holds, if its kind is known; `depths` the number of jobs in long queues.
    """

    waiting: Mapping[int, WaitingWork]
    running: Mapping[int, int]
    depths: Mapping[int, int] = {}


class FleetSnapshot(NamedTuple):
    """Everything that was read."""

    fleet: Fleet
    pools: Sequence[KnownPool]
    host_of: Mapping[int, int]  # by worker

    def members_of(self, known: KnownPool) -> list[Member]:
        """Returns the workers of a pool, to decide which of them leave."""
        waiting = {host for t in self.fleet.targets if t.queued for host in t.hosts}
        return [
            Member(row.id, row.idle_since, self.host_of.get(row.known_worker) in waiting)
            for row in known.members
            if row.state in SERVING
        ]


async def take_snapshot(work: Work, survey: Survey) -> FleetSnapshot:
    """Reads everything in this transaction, except what a survey collected before."""
    tx = work.tx
    load = _deepened(await tx.pools.load(MAX_COUNTED), survey.depths)
    await work.catalog.know(tx, load.shapes)
    workers = {worker.id: worker for worker in await tx.workers.all()}
    living = await tx.pools.living()
    members: dict[int, list[PoolWorkerRow]] = {}
    for member in living:
        members.setdefault(member.pool, []).append(member)
    pools = [_know(row, members.get(row.id, ())) for row in await tx.pools.all()]
    used: dict[str, tuple[int, int]] = {}
    for cost in await tx.pools.costs(month_of(work.now)):
        ms, micros = used.get(cost.pool, (0, 0))
        used[cost.pool] = ms + cost.ms, micros + cost.micros
    found = sort_workers(work, workers, pools)
    targets = Targets(work, pools, found, survey.waiting, survey.running)
    longest = {known.pool.name: _longest(known, work, load, survey) for known in pools}
    now = [_pool_now(work.config, known, used, longest) for known in pools]
    fleet = Fleet(work.now, targets.gather(load, MAX_SURVEYED), tuple(found.hosts), tuple(now))
    return FleetSnapshot(fleet, pools, found.host_of)


def _deepened(load: Load, depths: Mapping[int, int]) -> Load:
    """Returns the load with full counts for shapes that exceed one transaction's limit."""
    ready = [(s, max(count, depths.get(s, 0)) if count == MAX_COUNTED else count)
             for s, count in load.ready]  # fmt: skip
    return load._replace(ready=ready)


def _know(row: PoolRow, members: Sequence[PoolWorkerRow]) -> KnownPool:
    pool = decode_pool(row.body)
    return KnownPool(row, pool, members, template_of(row, pool))


def _pool_now(
    config: Config,
    known: KnownPool,
    used: Mapping[str, tuple[int, int]],
    longest: Mapping[str, int],
) -> PoolNow:
    row, pool = known.row, known.pool
    if row.state == PoolState.DELETING:
        pool = msgspec.structs.replace(pool, enabled=False)
    serving = known.count(SERVING)
    used_ms, used_micros = used.get(pool.name, (0, 0))
    return PoolNow(
        pool,
        serving=serving,
        starting=known.count((Lifecycle.REQUESTED, Lifecycle.STARTING)),
        leaving=known.count(LIVING) - serving,
        used_ms=used_ms,
        used_micros=used_micros,
        failures=row.failures,
        next_at=row.next_at,
        started_at=row.started_at,
        known=row.learned is not None,
        longest_ms=longest[pool.name],
        ending_ms=config.term_grace_ms + ROUNDS_TO_END * config.pools_interval_ms,
        message=row.message,
    )


def _longest(known: KnownPool, work: Work, load: Load, survey: Survey) -> int:
    """Returns the longest expected run time of a job that workers of this pool may get."""
    usual = known.pool.expected_ms
    shapes = work.catalog.shapes
    mine = {s for s in load.shapes if can_run(shapes[s], known.template.metadata) is None}
    times = [survey.waiting[s].expect(usual) for s in mine if s in survey.waiting]
    times += [survey.running.get(h.job, usual) for h in load.leases if h.shape in mine]
    return max(times, default=usual)


async def survey_waiting(tx: ReadTx, catalog: Catalog, shape: int) -> WaitingWork:
    """Returns the expected work of a shape's ready jobs, and since when the first of them waits."""
    sample = await tx.views.ready_sample(shape, SAMPLE)
    kinds = Kinds(tx, catalog)
    await kinds.learn((shape, job.spec) for job in sample)
    known = [found for job in sample if (found := kinds.of(shape, job.spec)) is not None]
    since = min((job.since for job in sample if job.since is not None), default=None)
    if not known:
        return WaitingWork(since=since)
    mean = sum(found.mean_ms for found in known) / len(known)
    return WaitingWork(mean, len(known) / len(sample), since)


async def survey_running(tx: ReadTx, catalog: Catalog, held: Sequence[HeldJob]) -> dict[int, int]:
    """Returns the expected run times of these jobs, as far as their kinds are known."""
    specs = await tx.jobs.specs([one.job for one in held])
    kinds = Kinds(tx, catalog)
    jobs = [(one.job, one.shape, specs[one.job]) for one in held if one.job in specs]
    await kinds.learn((shape, spec) for _, shape, spec in jobs)
    found = ((job, kinds.of(shape, spec)) for job, shape, spec in jobs)
    return {job: max(1, round(known.mean_ms)) for job, known in found if known is not None}
