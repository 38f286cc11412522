"""Decides how many workers a pool needs: pure functions over a snapshot of the fleet.

The formula, for all work that the same workers and pools can run (a *target*):

    latency = (rest of its running jobs + its queued work) / number of its jobs that run at once

A pool over its target latency starts just enough workers to get under it. Workers that are
starting count, and no target gets more places than it has jobs. How many jobs a worker takes
at once depends on its slots and on the resources that the jobs take. Workers that serve
several targets are shared out among them as a small maximum flow in whole numbers, so that each
counts once.
"""

from collections import deque
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from windlass.domain.pools.pools import Pool, backoff_ms
from windlass.domain.pools.scale import MILLI, Host, Scale, Target
from windlass.domain.values.quantities import readable_duration

NEVER: Final = -1  # the latency of work that no worker can run


class PoolNow(NamedTuple):
    """The current state of a pool. `used_ms` is the part of this month's budget it has used."""

    pool: Pool
    serving: int = 0  # starting and online
    starting: int = 0  # of these, the ones still starting
    leaving: int = 0  # still there, but draining
    used_ms: int = 0
    used_micros: int = 0
    failures: int = 0
    next_at: int = 0
    started_at: int = 0
    known: bool = False  # we have seen the metadata of one of its workers
    longest_ms: int = 0  # the longest expected run time of a job
    ending_ms: int = 30_000  # the time to stop a job and to end its machine
    message: str | None = None


class Fleet(NamedTuple):
    """The snapshot that decisions are based on."""

    now: int
    targets: tuple[Target, ...]
    hosts: tuple[Host, ...]
    pools: tuple[PoolNow, ...]


class Verdict(NamedTuple):
    """What a pool should do now, and the numbers behind it."""

    pool: str
    start: int
    wanted: int  # how many more the formula asks for, before limits
    work_ms: int
    jobs: int
    slots: int
    latency_ms: int
    after_ms: int
    target_ms: int
    reason: str
    serving: int = 0  # what it has already

    @property
    def size(self) -> int:
        """Returns the pool's target size before limits."""
        return self.serving + self.wanted


def size(fleet: Fleet) -> list[Verdict]:
    """Returns what each pool should start, in the order of `_turn`."""
    hosts = list(fleet.hosts)
    targets = list(fleet.targets)
    verdicts: list[Verdict] = []
    for one in sorted(fleet.pools, key=_turn):
        verdict = _size_pool(one, targets, hosts, fleet.now)
        verdicts.append(verdict)
        if verdict.start:
            # Later pools see what earlier ones start.
            hosts.append(Host(-1 - len(hosts), one.pool.name, verdict.start))
            targets = [target_with(target, hosts[-1]) for target in targets]
    return verdicts


def target_with(target: Target, host: Host) -> Target:
    """Returns the target with more workers of a pool, if they can run it."""
    room = target.pools.get(host.pool)
    return target if room is None else target._replace(hosts={**target.hosts, host.id: room})


def _turn(one: PoolNow) -> tuple[int, int, str]:
    """Orders pools by priority, then by price, then by name."""
    return -one.pool.priority, one.pool.hourly_price, one.pool.name


def _serves(one: PoolNow, target: Target) -> bool:
    return one.pool.name in target.pools


def _size_pool(one: PoolNow, targets: Sequence[Target], hosts: Sequence[Host], now: int) -> Verdict:
    pool = one.pool
    mine = [t for t in targets if _serves(one, t)]
    work, jobs = sum(t.work_ms for t in mine), sum(t.queued + t.running for t in mine)
    scale = Scale(pool.name, targets, hosts)
    extra = _extra(one, targets, scale)
    wanted = -(-extra // (MILLI * scale.worker))
    if not one.known and not one.serving and any(_might(one, t) for t in targets):
        wanted = max(wanted, 1)  # only a real worker can show the metadata of this pool
    behind = _behind(one, mine, hosts)
    wanted = max(wanted, pool.min_workers - one.serving, behind.wanted, 0)
    start, limit = _limited(one, wanted, now)
    latency = latency_ms(scale.work, scale.reach)
    after = latency_ms(scale.work, scale.reach + start * scale.worker)
    reason = limit or _reason(one, wanted, latency, mine, hosts, behind)
    return Verdict(
        pool.name, start, wanted, work, jobs, scale.slots(work), latency, after,
        pool.target_latency_ms, reason, one.serving,
    )  # fmt: skip


class Behind(NamedTuple):
    """How many workers the actual waiting times call for, and the longest wait."""

    wanted: int = 0
    waited_ms: int = 0


def _behind(one: PoolNow, mine: Sequence[Target], hosts: Sequence[Host]) -> Behind:
    """Doubles a pool while unplaced jobs have waited longer than its target."""
    counts = {host.id: host.workers for host in hosts}
    useful = longest = 0
    for target in mine:
        homeless = target.queued - max(target.places(counts) - target.running, 0)
        if homeless > 0 and target.waited_ms > one.pool.target_latency_ms:
            useful += -(-homeless // target.pools[one.pool.name])
            longest = max(longest, target.waited_ms)
    online = one.serving - one.starting
    return Behind(max(min(useful, max(online, 1) - one.starting), 0), longest)


def _might(one: PoolNow, target: Target) -> bool:
    return bool(target.queued) and one.pool.name in target.guesses


def _extra(one: PoolNow, targets: Sequence[Target], scale: Scale) -> int:
    """Returns how many units this pool must add after the best distribution of all workers."""
    target_ms = one.pool.target_latency_ms
    needs = [scale.needed(n, target, target_ms) for n, target in enumerate(targets)]
    reach = [scale.reached(n, target) for n, target in enumerate(targets)]
    helped = [bool(target.queued) and _serves(one, target) for target in targets]
    return spare_flow(needs, reach, scale.capacities(), helped)


def latency_ms(work_ms: int, slots: int) -> int:
    """Returns how long work takes if this many jobs run at once; `NEVER` if none can."""
    if not work_ms:
        return 0
    return -(-work_ms // slots) if slots else NEVER


def _limited(one: PoolNow, wanted: int, now: int) -> tuple[int, str]:
    """Returns how many workers may start, and what prevents the others."""
    pool = one.pool
    if not pool.enabled:
        return 0, "the pool is not enabled"
    if not wanted:
        return 0, ""
    if now < one.next_at:
        left = readable_duration(one.next_at - now)
        why = f": {one.message}" if one.message else ""
        return 0, f"{_trouble(one.failures)}, next try in {left}{why}"
    if one.starting and one.failures:
        return 0, "after a failed launch, workers start one at a time, and one is starting"
    if now < one.started_at + pool.start_cooldown_ms:
        left = readable_duration(one.started_at + pool.start_cooldown_ms - now)
        return 0, f"cooling down for another {left} after the last start"
    start, limit = wanted, ""
    if one.failures and start > 1:
        start, limit = 1, "after a failed launch, workers start one at a time"
    room = max(pool.max_workers - one.serving - one.leaving, 0)
    if room < start:
        start, limit = room, f"max_workers is {pool.max_workers}"
    affordable = affordable_workers(one)
    if affordable < start:
        left_ms = max(pool.max_ms_per_month - one.used_ms, 0)
        start, limit = affordable, f"{readable_duration(left_ms)} of this month's budget is left"
    return start, limit


def _trouble(failures: int) -> str:
    if not failures:
        return "its provider is failing"
    return "the last launch failed" if failures == 1 else f"{failures} launches in a row failed"


def reserve_ms(one: PoolNow) -> int:
    """Returns what a worker still uses after it is told to drain: a whole job and some seconds."""
    return max(one.longest_ms, 1_000) + one.ending_ms


def affordable_workers(one: PoolNow) -> int:
    """Returns how many more workers the budget allows if all must end in time."""
    pool = one.pool
    if not pool.max_ms_per_month:
        return pool.max_workers
    reserve = reserve_ms(one)
    left = pool.max_ms_per_month - one.used_ms - (one.serving + one.leaving) * reserve
    return max(left // (2 * reserve), 0)


def over_budget(one: PoolNow) -> bool:
    """Returns True if workers must leave now to stay within the month's budget."""
    limit = one.pool.max_ms_per_month
    if not limit:
        return False
    return one.used_ms + (one.serving + one.leaving) * reserve_ms(one) >= limit


def is_spent(one: PoolNow) -> bool:
    """Returns True if so little budget is left that workers must give up their jobs."""
    limit = one.pool.max_ms_per_month
    return bool(limit) and one.used_ms + (one.serving + one.leaving) * one.ending_ms >= limit


def _reason(
    one: PoolNow,
    wanted: int,
    latency: int,
    mine: Sequence[Target],
    hosts: Sequence[Host],
    behind: Behind,
) -> str:
    pool = one.pool
    target = readable_duration(pool.target_latency_ms)
    if wanted and wanted == pool.min_workers - one.serving:
        return f"min_workers is {pool.min_workers}"
    if wanted and wanted == behind.wanted and 0 <= latency <= pool.target_latency_ms:
        waited = readable_duration(behind.waited_ms)
        return f"jobs have waited for {waited}, over the target of {target}"
    if latency > pool.target_latency_ms and wanted:
        return f"estimated latency ({readable_duration(latency)}) is over the target of {target}"
    if wanted:
        return _lacking(pool, mine, hosts)
    if not any(target.queued for target in mine):
        return "no queued job could run on it"
    return f"estimated latency ({readable_duration(latency)}) is within the target of {target}"


def _lacking(pool: Pool, mine: Sequence[Target], hosts: Sequence[Host]) -> str:
    """Returns why workers are wanted although the total work would be done in time."""
    counts = {host.id: host.workers for host in hosts}
    impossible = late = worst = 0
    for target in mine:
        if not target.queued:
            continue
        places = target.places(counts)
        latency = latency_ms(target.work_ms, places)
        if not places:
            impossible += target.queued
        elif latency > pool.target_latency_ms:
            late += target.queued
            worst = max(worst, latency)
    limit = readable_duration(pool.target_latency_ms)
    if impossible:
        return f"no worker can run {_jobs(impossible)}"
    if late:
        shown = readable_duration(worst)
        return f"estimated latency of {_jobs(late)} ({shown}) is over the target of {limit}"
    if any(target.queued for target in mine):
        return "other jobs occupy the workers that could run its jobs"
    return "it might run the queued jobs: its first worker will show"


def _jobs(count: int) -> str:
    return "1 queued job" if count == 1 else f"{count} queued jobs"


class Member(NamedTuple):
    """A worker of a pool; `queued` is True if jobs wait that it could run."""

    id: int
    idle_since: int | None  # None while it has work or is starting
    queued: bool


def leavers(one: PoolNow, members: Sequence[Member], now: int) -> dict[int, str]:
    """Returns the workers to drain, and why; never busy ones unless the pool ends.

    Draining lets jobs finish, so even then no running job is killed.
    """
    pool = one.pool
    if not pool.enabled:
        return {member.id: "the pool is not enabled" for member in members}
    if over_budget(one):
        return {member.id: "this month's budget is used up" for member in members}
    idle = sorted((m.idle_since, m.id, m.queued) for m in members if m.idle_since is not None)
    going: dict[int, str] = {}
    surplus = one.serving - pool.max_workers
    for _, member, _ in idle[: max(surplus, 0)]:
        going[member] = f"max_workers is {pool.max_workers}"
    for idle_since, member, queued in idle:
        may_go = one.serving - len(going) > pool.min_workers
        since = now - idle_since
        if member not in going and may_go and not queued and since >= pool.max_idle_ms:
            going[member] = f"idle for {readable_duration(since)}"
    return going


def after_failure(pool: Pool, failures: int, now: int) -> int:
    """Returns when a pool may try again after this many failures in a row."""
    return now + backoff_ms(pool, failures)


def what_if(fleet: Fleet, workers: int | None = None, target_ms: int | None = None) -> Fleet:
    """Returns the fleet with this many workers in each pool, or with another target latency."""
    if target_ms is not None:
        pools = (
            one._replace(pool=replace(one.pool, target_latency_ms=target_ms)) for one in fleet.pools
        )
        fleet = fleet._replace(pools=tuple(pools))
    return fleet if workers is None else _with_workers(fleet, workers)


def _with_workers(fleet: Fleet, workers: int) -> Fleet:
    """Gives each pool this many workers and keeps all others."""
    names = {one.pool.name for one in fleet.pools}
    kept = [host for host in fleet.hosts if host.pool not in names]
    fresh = [Host(-1 - n, one.pool.name, workers) for n, one in enumerate(fleet.pools) if workers]
    stays = {host.id for host in kept}
    targets = [_with_hosts(target, stays, fresh) for target in fleet.targets]
    pools = [one._replace(serving=workers, starting=0, leaving=0) for one in fleet.pools]
    return fleet._replace(hosts=(*kept, *fresh), targets=tuple(targets), pools=tuple(pools))


def _with_hosts(target: Target, stays: Container[int], fresh: Sequence[Host]) -> Target:
    """Replaces the hosts; pools that might run the target count as able to, one job each."""
    hosts = {host: room for host, room in target.hosts.items() if host in stays}
    for host in fresh:
        if host.pool in target.pools or host.pool in target.guesses:
            hosts[host.id] = target.pools.get(host.pool, 1)
    return target._replace(hosts=hosts)


Step = tuple[int, int | None]  # a need, and the host it draws from (None for the helper)


def spare_flow(
    needs: Sequence[int],
    reach: Sequence[Mapping[int, int]],
    capacities: Mapping[int, int],
    helped: Sequence[bool],
) -> int:
    """Returns how much of the needs only a helper can meet.

    Each need may draw on the hosts it reaches: on each up to what `reach` says, and all needs
    together up to the host's capacity. We first find the best distribution. Then we return what the
    `helped` needs still lack, after moving other needs to other hosts where possible.
    """
    flow = _Flow(needs, reach, capacities)
    flow.fill(helper=None)
    return flow.fill(helper=helped)


class _Flow:
    """A bipartite flow with needs on one side and hosts on the other."""

    def __init__(
        self,
        needs: Sequence[int],
        reach: Sequence[Mapping[int, int]],
        capacities: Mapping[int, int],
    ) -> None:
        self._left = list(needs)
        self._free = [dict(hosts) for hosts in reach]  # what each need may still draw from a host
        self._used: list[dict[int, int]] = [{} for _ in needs]
        self._room = dict(capacities)
        self._users: dict[int, list[int]] = {}
        for need, hosts in enumerate(reach):
            for host in hosts:
                self._users.setdefault(host, []).append(need)

    def fill(self, helper: Sequence[bool] | None) -> int:
        """Meets needs as far as possible; returns how much came from the helper."""
        helped = 0
        for need in range(len(self._left)):
            while self._left[need] and (path := self._path(need, helper)):
                helped += self._push(need, path)
        return helped

    def _path(self, start: int, helper: Sequence[bool] | None) -> list[Step] | None:
        """Finds an augmenting path: steps from one need to the next, up to free capacity."""
        came: dict[int, tuple[int, int] | None] = {start: None}
        waiting = deque([start])
        seen: set[int] = set()  # hosts whose users are all in the queue
        while waiting:
            need = waiting.popleft()
            if helper is not None and helper[need]:
                return _trace(came, need, None)
            for host, free in self._free[need].items():
                if not free or host in seen:
                    continue
                if self._room[host]:
                    return _trace(came, need, host)
                seen.add(host)
                for other in self._users[host]:
                    if other not in came and self._used[other].get(host):
                        came[other] = (need, host)
                        waiting.append(other)
        return None

    def _push(self, start: int, path: Sequence[Step]) -> int:
        """Pushes as much as possible along the path; returns how much came from the helper."""
        amount = self._left[start]
        for (need, host), (after, _) in pairwise(path):
            assert host is not None
            amount = min(amount, self._free[need][host], self._used[after][host])
        need, last = path[-1]
        if last is not None:
            amount = min(amount, self._free[need][last], self._room[last])
            self._room[last] -= amount
        for n, (need, host) in enumerate(path):
            if n:
                self._take(need, path[n - 1][1], -amount)
            self._take(need, host, amount)
        self._left[start] -= amount
        return amount if last is None else 0

    def _take(self, need: int, host: int | None, amount: int) -> None:
        if host is not None:
            self._used[need][host] = self._used[need].get(host, 0) + amount
            self._free[need][host] -= amount


def _trace(came: Mapping[int, tuple[int, int] | None], need: int, host: int | None) -> list[Step]:
    steps: list[Step] = [(need, host)]
    while (before := came[need]) is not None:
        need, taken = before
        steps.append((need, taken))
    return steps[::-1]
