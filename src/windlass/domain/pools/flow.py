"""Distributes workers over work: a small maximum flow in whole numbers."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

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
        """Shifts as much as possible along the path; returns how much the helper gave."""
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
