"""What pools decide from: one look at the queue, the workers and the pools themselves."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.moments import month_of
from windlass.domain.pool_sizing import Fleet, Host, Member, PoolNow, Target
from windlass.domain.pool_templates import Template, decode_pool, template_of
from windlass.domain.pools import (
    LIVING,
    SERVING,
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
)
from windlass.domain.records import Worker
from windlass.domain.shape import can_run
from windlass.domain.workers import may_claim
from windlass.engine.work import Work
from windlass.ports.store_pools import Load

MOST_COUNTED: Final = 20_000  # ready jobs of one shape; more need more than any pool has


class Known(NamedTuple):
    """A pool, its row and its workers."""

    row: PoolRow
    pool: Pool
    members: Sequence[PoolWorkerRow]
    template: Template

    @property
    def wanted(self) -> bool:
        return self.row.state == PoolState.ACTIVE and self.pool.enabled

    def count(self, states: Iterable[Lifecycle]) -> int:
        return sum(member.state in tuple(states) for member in self.members)


class Seen(NamedTuple):
    """Everything that was looked at."""

    fleet: Fleet
    pools: Sequence[Known]
    workers: Mapping[int, Worker]
    load: Load

    def members_of(self, known: Known) -> list[Member]:
        """The workers of a pool, as those that decide who leaves see them."""
        waiting = frozenset[int]().union(*(t.hosts for t in self.fleet.targets if t.queued))
        return [
            Member(row.id, row.idle_since, row.worker in waiting)
            for row in known.members
            if row.state in SERVING
        ]


async def look(work: Work, expected: Mapping[int, int]) -> Seen:
    """Read all of it in this transaction; `expected` are runtimes by shape."""
    tx = work.tx
    load = await tx.pools.load(MOST_COUNTED)
    await work.catalog.know(tx, {s for s, _ in load.ready} | {s for _, s, _ in load.leases})
    workers = {worker.id: worker for worker in await tx.workers.all()}
    living = await tx.pools.living()
    pools = [_know(row, living) for row in await tx.pools.all()]
    used: dict[str, int] = {}
    for cost in await tx.pools.costs(month_of(work.now)):
        used[cost.pool] = used.get(cost.pool, 0) + cost.ms
    hosts = _hosts(workers, pools)
    targets = _Targets(work, pools, workers, hosts, expected).gather(load)
    longest = {
        known.pool.name: max(
            (
                expected.get(shape, known.pool.expected_ms)
                for shape in _shapes_of(known, work, load)
            ),
            default=known.pool.expected_ms,
        )
        for known in pools
    }
    now = [_pool_now(known, used, longest) for known in pools]
    return Seen(Fleet(work.now, targets, tuple(hosts.values()), tuple(now)), pools, workers, load)


def _know(row: PoolRow, living: Sequence[PoolWorkerRow]) -> Known:
    pool = decode_pool(row.body)
    mine = [member for member in living if member.pool == row.id]
    return Known(row, pool, mine, template_of(row, pool))


def _pool_now(known: Known, used: Mapping[str, int], longest: Mapping[str, int]) -> PoolNow:
    row, pool = known.row, known.pool
    if row.state == PoolState.DELETING:
        pool = msgspec.structs.replace(pool, enabled=False)
    serving = known.count(SERVING)
    return PoolNow(
        pool,
        serving=serving,
        starting=known.count((Lifecycle.REQUESTED, Lifecycle.STARTING)),
        leaving=known.count(LIVING) - serving,
        used_ms=used.get(pool.name, 0),
        failures=row.failures,
        next_at=row.next_at,
        started_at=row.started_at,
        known=row.learned is not None,
        longest_ms=longest[pool.name],
        message=row.message,
    )


def _shapes_of(known: Known, work: Work, load: Load) -> set[int]:
    shapes = {shape for shape, _ in load.ready} | {shape for _, shape, _ in load.leases}
    return {s for s in shapes if can_run(work.catalog.shapes[s], known.template.metadata) is None}


def _hosts(workers: Mapping[int, Worker], pools: Sequence[Known]) -> dict[int, Host]:
    """Workers that take jobs, and those of pools that soon will."""
    hosts = {w.id: Host(w.id, w.slots) for w in workers.values() if may_claim(w.status)}
    for known in pools:
        for member in known.members:
            hosts.pop(member.worker, None)
            online = member.state == Lifecycle.ONLINE
            worker = workers.get(member.worker)
            if online and (worker is None or not may_claim(worker.status)):
                continue
            if member.state in SERVING:
                hosts[member.worker] = Host(member.worker, known.pool.slots, known.pool.name)
    return hosts


class _Targets:
    """Gathers work by who can run it."""

    def __init__(
        self,
        work: Work,
        pools: Sequence[Known],
        workers: Mapping[int, Worker],
        hosts: Mapping[int, Host],
        expected: Mapping[int, int],
    ) -> None:
        self._work = work
        self._pools = [known for known in pools if known.wanted]
        self._by_name = {known.pool.name: known for known in pools}
        self._workers = workers
        self._hosts = hosts
        self._expected = expected

    def gather(self, load: Load) -> tuple[Target, ...]:
        """One target for each combination of workers and pools."""
        parts: dict[int, list[int]] = {}  # shape → queued, queued_ms, running, running_ms
        catalog = self._work.catalog
        for shape, count in load.ready:
            if not catalog.paused(shape):
                parts[shape] = [count, count * self._expect(shape), 0, 0]
        for worker, shape, since in load.leases:
            if worker in self._hosts:
                part = parts.setdefault(shape, [0, 0, 0, 0])
                left = self._expect(shape) - (self._work.now - since)
                part[2] += 1
                part[3] += max(left, 0)
        joined: dict[tuple[frozenset[Any], ...], tuple[list[int], list[int]]] = {}
        for shape, numbers in sorted(parts.items()):
            shapes, sums = joined.setdefault(self._who(shape), ([], [0, 0, 0, 0]))
            shapes.append(shape)
            for n, number in enumerate(numbers):
                sums[n] += number
        return tuple(
            Target(self._label(shapes), sums[0], sums[1], sums[2], sums[3], *who)
            for who, (shapes, sums) in joined.items()
        )

    def _expect(self, shape: int) -> int:
        found = self._expected.get(shape)
        if found is not None:
            return max(found, 1)
        needs = self._work.catalog.shapes[shape]
        able = (k.pool.expected_ms for k in self._pools if k.template.could_run(needs))
        return next(able, self._pools[0].pool.expected_ms if self._pools else 1)

    def _who(self, shape: int) -> tuple[frozenset[Any], ...]:
        needs = self._work.catalog.shapes[shape]
        hosts = frozenset(host for host in self._hosts.values() if self._runs(host, shape))
        able = frozenset(
            k.pool.name for k in self._pools if can_run(needs, k.template.metadata) is None
        )
        might = frozenset(k.pool.name for k in self._pools if k.template.could_run(needs))
        return frozenset(host.id for host in hosts), able, might - able

    def _runs(self, host: Host, shape: int) -> bool:
        worker = self._workers.get(host.id)
        if worker is not None and worker.incarnation:
            return self._work.catalog.profile(worker).runs(shape)
        known = self._by_name.get(host.pool)
        needs = self._work.catalog.shapes[shape]
        return known is not None and known.template.could_run(needs)

    def _label(self, shapes: Sequence[int]) -> str:
        first = self._work.catalog.shapes[shapes[0]]
        more = f" and {len(shapes) - 1} more shapes" if len(shapes) > 1 else ""
        return f"{first.namespace}/{first.queue}: {first.task}{more}"
