"""Work and workers in one measure, so that they can be compared and shared out."""

from collections.abc import Mapping, Sequence
from math import lcm
from typing import Final, NamedTuple

MILLI: Final = 1_000  # places are shared out in thousandths


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
    guesses: frozenset[str] = frozenset()  # pools that might run it, as far as is known
    more: bool = False  # more are queued than were counted
    obstacle: str = ""  # what keeps it from everybody there is

    @property
    def work_ms(self) -> int:
        return self.queued_ms + self.running_ms

    def needed(self, target_ms: int) -> int:
        """Thousandths of places that bring its latency under `target_ms`."""
        wanted = -(-self.work_ms * MILLI // target_ms)
        return min(max(wanted, min(self.queued, 1)), (self.queued + self.running) * MILLI)


class Host(NamedTuple):
    """Workers that are alike and take jobs, now or soon; `pool` is empty for those of none."""

    id: int
    pool: str = ""
    workers: int = 1


class Scale:
    """One measure for everything that a pool's work is done by.

    A worker of the pool is `worker` units; a job of which it takes r at once needs the r-th
    part of that. Others are worth what they do in their best use, and no target gets more of
    them than they can do of it.
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
        """Returns what a job needs that workers of the pool can run; 0 for others."""
        if pool not in target.pools:
            return 0
        each = self.worker // target.pools[pool]
        for host, room in target.hosts.items():
            if host in self._counts:
                sizes[host] = max(sizes.get(host, 0), room * each)
        return each

    def _of_others(self, target: Target, sizes: dict[int, int]) -> int:
        """Returns the need of work that others can run too, on what it shares with the pool."""
        shared = [sizes[host] // room for host, room in target.hosts.items() if host in sizes]
        each = max(min(shared, default=1), 1)
        for host, room in target.hosts.items():
            if host in self._counts:
                sizes.setdefault(host, room * each)
        return each

    def needed(self, number: int, target: Target, target_ms: int) -> int:
        return target.needed(target_ms) * self._each[number]

    def reached(self, number: int, target: Target) -> dict[int, int]:
        """Returns how much of each host a target can make use of."""
        each = self._each[number]
        return {
            host: min(room * each, self._sizes[host]) * self._counts[host] * MILLI
            for host, room in target.hosts.items()
            if host in self._counts
        }

    def capacities(self) -> dict[int, int]:
        return {host: size * self._counts[host] * MILLI for host, size in self._sizes.items()}

    def slots(self, work_ms: int) -> int:
        """Returns how many jobs run at once, on the average of the work."""
        if self.work:
            return max(round(self.reach * work_ms / self.work), min(self.reach, 1))
        return self.reach * self._largest // self.worker
