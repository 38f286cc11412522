"""Reads what pool decisions are based on: the queue, the workers and the pools themselves.

Work is grouped by who can run it, and workers by what they can run. How long waiting and running
jobs will take is estimated before, outside of decisions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.config import Config
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.matching.workers import may_claim
from windlass.domain.pools.pools import (
    LIVING,
    SERVING,
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    Template,
    decode_pool,
    room_for,
    template_of,
)
from windlass.domain.pools.scale import Host, Target, left_ms
from windlass.domain.pools.sizing import Fleet, Member, PoolNow
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import WorkerId
from windlass.domain.values.quantities import counted, month_of
from windlass.engine.fleet.capability import nearest
from windlass.engine.history.statistics import Kinds
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.pools import HeldJob, Load
from windlass.store.sql.transaction import ReadTx

MAX_COUNTED: Final = 20_000  # ready jobs of one shape read in one transaction
ROUNDS_TO_END: Final = 4  # times of a member: told to stop, seen as stopped, ended, seen as ended
MAX_SURVEYED: Final = 1_000_000  # ready jobs of one shape; we count no further
SAMPLE: Final = 200  # jobs from each end of a shape that represent all of them
HELD_AT_ONCE: Final = 1_000


class KnownPool(NamedTuple):
    """A pool, its row and its workers."""

    row: PoolRow
    pool: Pool
    members: Sequence[PoolWorkerRow]
    template: Template

    @property
    def wanted(self) -> bool:
        return self.row.state == PoolState.ACTIVE and self.pool.enabled

    def count(self, states: Sequence[Lifecycle]) -> int:
        return sum(member.state in states for member in self.members)


class WorkerGroup(NamedTuple):
    """Equal workers: live ones have a profile, others what their pool predicts."""

    pool: str
    slots: int
    profile: Profile | None


class SortedWorkers(NamedTuple):
    """Workers that take jobs now or soon, and the host that each of them belongs to."""

    hosts: Sequence[Host]
    kinds: Sequence[WorkerGroup]  # host by host
    host_of: Mapping[int, int]


class WaitingWork(NamedTuple):
    """The mean expected run time of a shape's ready jobs, as far as their kinds are known.

    `share` is the part of them whose kind has a past; the oldest waits since `since`.
    """

    mean_ms: float = 0.0
    share: float = 0.0
    since: int | None = None

    def expect(self, usual_ms: int) -> int:
        """Returns a job's expected run time; the usual time if its kind is unknown."""
        return max(1, round(self.share * self.mean_ms + (1 - self.share) * usual_ms))


class ShapeWork:
    """The work of one shape, in jobs and milliseconds."""

    def __init__(self) -> None:
        self.queued = self.running = self.running_ms = 0
        self.more = False


def sort_workers(
    work: Work, workers: Mapping[WorkerId, Worker], pools: Sequence[KnownPool]
) -> SortedWorkers:
    """Sorts all workers that take jobs by what they can run."""
    kinds = {
        worker.id: WorkerGroup("", worker.slots, work.catalog.profile(worker))
        for worker in workers.values()
        if may_claim(worker.status)
    }
    for known in pools:
        for member in known.members:
            kinds.pop(WorkerId(member.known_worker), None)
            if member.state in SERVING and (kind := _kind_of(work, workers, known, member)):
                kinds[WorkerId(member.known_worker)] = kind
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds.values()))}
    counts = Counter(kinds.values())
    hosts = [Host(number, kind.pool, counts[kind]) for kind, number in numbers.items()]
    return SortedWorkers(
        hosts, list(numbers), {worker: numbers[kind] for worker, kind in kinds.items()}
    )


def _kind_of(
    work: Work, workers: Mapping[WorkerId, Worker], known: KnownPool, member: PoolWorkerRow
) -> WorkerGroup | None:
    worker = workers.get(WorkerId(member.known_worker))
    if worker is not None and worker.incarnation and may_claim(worker.status):
        return WorkerGroup(known.pool.name, worker.slots, work.catalog.profile(worker))
    if member.state == Lifecycle.ONLINE:
        return None  # it is briefly away, or disabled
    return WorkerGroup(known.pool.name, known.template.slots, None)


class Targets:
    """Collects work by who can run it."""

    def __init__(
        self,
        work: Work,
        pools: Sequence[KnownPool],
        found: SortedWorkers,
        waiting: Mapping[int, WaitingWork],
        running: Mapping[int, int],
    ) -> None:
        self._work = work
        self._catalog = work.catalog
        self._pools = [known for known in pools if known.wanted]
        self._unwanted = [known for known in pools if not known.wanted]
        self._templates = {known.pool.name: known.template for known in pools}
        self._found = found
        self._waiting = waiting
        self._running = running

    def gather(self, load: Load, most: int) -> tuple[Target, ...]:
        """Returns one target for each combination of workers and pools, and their capacities."""
        joined: dict[object, tuple[list[int], Target]] = {}
        for shape, counts in sorted(self._count(load, most).items()):
            target = self._target(shape, counts)
            key = (*target.hosts.items(), *target.pools.items(), target.guesses, target.obstacle)
            shapes, sums = joined.setdefault(key, ([], target))
            shapes.append(shape)
            if len(shapes) > 1:
                joined[key] = shapes, _join(sums, target)
        return tuple(
            target._replace(label=self._label(shapes), shapes=tuple(shapes))
            for shapes, target in joined.values()
        )

    def _count(self, load: Load, most: int) -> dict[int, ShapeWork]:
        """Counts what waits and may start, and what runs on workers that take jobs."""
        found: dict[int, ShapeWork] = {}
        running = Counter(self._catalog.queue_of(held.shape) for held in load.leases)
        for shape, count in load.ready:
            if self._catalog.paused(shape):
                continue
            counts = found.setdefault(shape, ShapeWork())
            queue = self._catalog.queue_of(shape)
            row = self._catalog.queues.get(queue)
            room = row.max_running if row else 0
            counts.queued = min(count, max(room - running[queue], 0)) if room else count
            counts.more = counts.queued >= most
            running[queue] += counts.queued
        for held in load.leases:
            if held.worker in self._found.host_of:
                counts = found.setdefault(held.shape, ShapeWork())
                counts.running += 1
                expected = self._running.get(held.job) or self._usual(held.shape)
                counts.running_ms += left_ms(expected, self._work.now - held.since)
        return found

    def _target(self, shape: int, counts: ShapeWork) -> Target:
        hosts = {
            host.id: room
            for host, kind in zip(self._found.hosts, self._found.kinds, strict=True)
            if (room := self._room(kind, shape))
        }
        needs, per_worker = self._needs(shape)
        pools = {
            known.pool.name: room
            for known in self._pools
            if (room := known.template.room(needs, per_worker))
        }
        might = {k.pool.name for k in self._pools if k.template.could_run(needs)} - set(pools)
        nobody = counts.queued and not hosts and not pools and not might
        return Target(
            "", counts.queued, counts.queued * self._expect(shape), counts.running,
            counts.running_ms, hosts, pools, frozenset(might), counts.more,
            self._obstacle(shape) if nobody else "", self._waited(shape, counts),
        )  # fmt: skip

    def _needs(self, shape: int) -> tuple[Shape, int]:
        needs = self._catalog.shapes[shape]
        return needs, self._catalog.per_worker(needs.queue)

    def _room(self, kind: WorkerGroup, shape: int) -> int:
        """Returns how many jobs of this shape such a worker takes at once."""
        needs, per_worker = self._needs(shape)
        if kind.profile is None:
            template = self._templates[kind.pool]
            return template.room(needs, per_worker) or int(template.could_run(needs))
        if not kind.profile.runs(shape):
            return 0
        if not self._catalog.gated(shape, kind.profile):
            return kind.slots
        return room_for(needs, kind.profile.metadata, kind.slots, per_worker)

    def _obstacle(self, shape: int) -> str:
        """Returns why the pool that best meets its needs cannot run it."""
        needs = self._catalog.shapes[shape]
        for known in self._unwanted:
            if known.template.could_run(needs):
                why = (
                    "is not enabled" if known.row.state == PoolState.ACTIVE else "is being deleted"
                )
                return f"pool {known.pool.name} could run it, but {why}"
        best: tuple[int, str] | None = None
        for known in self._pools:
            lacking = nearest(needs, [known.template.metadata]) or ()
            why = "; ".join(mismatch.text for mismatch in lacking)
            text = f"a worker of pool {known.pool.name} could not run it: {why}"
            if best is None or len(lacking) < best[0]:
                best = len(lacking), text
        if best is None and self._unwanted:
            return "no pool is enabled"
        return best[1] if best else "there is no pool"

    def _expect(self, shape: int) -> int:
        return self._waiting.get(shape, WaitingWork()).expect(self._usual(shape))

    def _waited(self, shape: int, counts: ShapeWork) -> int:
        """Returns how long its oldest job has waited for a worker; 0 if a rate holds it back."""
        since = self._waiting.get(shape, WaitingWork()).since
        if since is None or not counts.queued or self._catalog.shapes[shape].rate is not None:
            return 0
        return max(0, self._work.now - since)

    def _usual(self, shape: int) -> int:
        """Returns the usual run time of a job of an unknown kind, as its pool says."""
        needs = self._catalog.shapes[shape]
        able = (k.pool.expected_ms for k in self._pools if k.template.could_run(needs))
        return next(able, self._pools[0].pool.expected_ms if self._pools else 1)

    def _label(self, shapes: Sequence[int]) -> str:
        first = self._catalog.shapes[shapes[0]]
        more = f" and {counted(len(shapes) - 1, 'more kind')}" if len(shapes) > 1 else ""
        return f"{first.namespace}/{first.queue}: {first.task}{more}"


def _join(one: Target, other: Target) -> Target:
    return one._replace(
        queued=one.queued + other.queued,
        queued_ms=one.queued_ms + other.queued_ms,
        running=one.running + other.running,
        running_ms=one.running_ms + other.running_ms,
        more=one.more or other.more,
        waited_ms=max(one.waited_ms, other.waited_ms),
    )


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
