"""Measures work and workers in one unit, to compare and distribute them."""

from collections.abc import Mapping, Sequence
from math import lcm
from typing import Final, NamedTuple

MILLI: Final = 1_000  # places are counted in thousandths
LONGER: Final = 4  # a job past its expected time takes at least this much more of it


class Target(NamedTuple):
    """Work that the same workers and pools can run; `label` is for people.

    `hosts` and `pools` say how many of its jobs one worker takes at once.
    """

    label: str
    queued: int
    queued_ms: int
    running: int
    running_ms: int
    hosts: Mapping[int, int]
    pools: Mapping[str, int]
    guesses: frozenset[str] = frozenset()  # pools that might run it, as far as we know
    more: bool = False  # more jobs are queued than were counted
    obstacle: str = ""  # why no existing worker can run it
    waited_ms: int = 0  # how long the oldest of its jobs has waited
    shapes: tuple[int, ...] = ()  # priority of its jobs

    @property
    def work_ms(self) -> int:
        return self.queued_ms + self.running_ms

    def places(self, workers: Mapping[int, int]) -> int:
        """Returns how many of its jobs run at once with these numbers of workers per host."""
        return sum(room * workers.get(host, 0) for host, room in self.hosts.items())

    def needed(self, target_ms: int) -> int:
        """Returns how many thousandths of places bring its latency under `target_ms`."""
        wanted = -(-self.work_ms * MILLI // target_ms)
        return min(max(wanted, min(self.queued, 1)), (self.queued + self.running) * MILLI)


def left_ms(expected_ms: int, elapsed_ms: int) -> int:
    """Returns how much longer a running job takes; one past its time, a quarter more of it."""
    return max(expected_ms - elapsed_ms, elapsed_ms // LONGER, 0)


class Host(NamedTuple):
    """Equal workers that take jobs now or soon; `pool` is empty if they belong to none."""

    id: int
    pool: str = ""
    workers: int = 1


class Scale:
    """The common unit for everything that does a pool's work.

    A worker of the pool is `worker` units. If it takes r jobs at once, each needs 1/r of that.
    Other workers are worth what they do at best, and no target gets more of them than they can do
    for it.
    """

    def __init__(self, pool: str, targets: Sequence[Target], hosts: Sequence[Host]) -> None:
        mine = [target for target in targets if pool in target.pools]
        self.worker = lcm(*(target.pools[pool] for target in mine))
        self._counts = {host.id: host.workers for host in hosts}
        sizes: dict[int, int] = {}  # what one worker of each host is worth
        self._each = [self._of_mine(target, pool, sizes) for target in targets]
        self.work = sum(t.work_ms * each for t, each in zip(targets, self._each, strict=True))
        self.reach = sum(size * self._counts[host] for host, size in sizes.items())
        self._largest = max((target.pools[pool] for target in mine), default=0)
        for n, target in enumerate(targets):
            self._each[n] = self._each[n] or self._of_others(target, sizes)
        self._sizes = sizes

    def _of_mine(self, target: Target, pool: str, sizes: dict[int, int]) -> int:
        """Returns what a job needs if workers of the pool can run it, else 0."""
        if pool not in target.pools:
            return 0
        each = self.worker // target.pools[pool]
        for host, room in target.hosts.items():
            if host in self._counts:
                sizes[host] = max(sizes.get(host, 0), room * each)
        return each

    def _of_others(self, target: Target, sizes: dict[int, int]) -> int:
        """Returns the units of a job that the pool cannot run, on hosts that it shares."""
        shared = [sizes[host] // room for host, room in target.hosts.items() if host in sizes]
        each = max(min(shared, default=1), 1)
        for host, room in target.hosts.items():
            if host in self._counts:
                sizes.setdefault(host, room * each)
        return each

    def needed(self, number: int, target: Target, target_ms: int) -> int:
        return target.needed(target_ms) * self._each[number]

    def reached(self, number: int, target: Target) -> dict[int, int]:
        """Returns how much of each host a target can use."""
        each = self._each[number]
        return {
            host: min(room * each, self._sizes[host]) * self._counts[host] * MILLI
            for host, room in target.hosts.items()
            if host in self._counts
        }

    def capacities(self) -> dict[int, int]:
        return {host: size * self._counts[host] * MILLI for host, size in self._sizes.items()}

    def slots(self, work_ms: int) -> int:
        """Returns how many jobs run at once, averaged over the work."""
        if self.work:
            return max(round(self.reach * work_ms / self.work), min(self.reach, 1))
        return self.reach * self._largest // self.worker
