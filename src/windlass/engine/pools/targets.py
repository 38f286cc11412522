"""Groups work by who can run it and workers by what they can run, as input for sizing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.job.capability import nearest
from windlass.domain.matching.shapes import Shape
from windlass.domain.matching.workers import may_claim
from windlass.domain.pools.pools import (
    SERVING,
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    Template,
    room_for,
)
from windlass.domain.pools.scale import Host, Target, left_ms
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import WorkerId
from windlass.domain.values.quantities import counted
from windlass.engine.transaction.catalog import Profile
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.pools import Load


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
