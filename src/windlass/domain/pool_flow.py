"""Sharing out slots among work: a small maximum flow, in whole numbers."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise


def spare_flow(
    needs: Sequence[int],
    reach: Sequence[frozenset[int]],
    capacities: Mapping[int, int],
    helped: Sequence[bool],
) -> int:
    """How much of the needs only a helper can meet.

    Each need may draw on the hosts it reaches, up to their capacities. The best sharing
    out is found first; what the needs marked as `helped` lack then is the answer, after
    others were moved aside for them as far as that goes.
    """
    flow = _Flow(needs, reach, capacities)
    flow.fill(helper=None)
    return flow.fill(helper=helped)


class _Flow:
    """Needs on one side, hosts with equal reach merged into one on the other."""

    def __init__(
        self,
        needs: Sequence[int],
        reach: Sequence[frozenset[int]],
        capacities: Mapping[int, int],
    ) -> None:
        self._left = list(needs)
        users: dict[int, list[int]] = {}
        for need, hosts in enumerate(reach):
            for host in hosts:
                users.setdefault(host, []).append(need)
        self._room: dict[tuple[int, ...], int] = {}
        for host, needed_by in users.items():
            kind = tuple(needed_by)
            self._room[kind] = self._room.get(kind, 0) + capacities[host]
        self._used: dict[tuple[int, tuple[int, ...]], int] = {}
        self._kinds_of: list[list[tuple[int, ...]]] = [[] for _ in needs]
        for kind in self._room:
            for need in kind:
                self._kinds_of[need].append(kind)

    def fill(self, helper: Sequence[bool] | None) -> int:
        """Meet needs as far as can be; how much came from the helper."""
        helped = 0
        for need in range(len(self._left)):
            while self._left[need] and (path := self._path(need, helper)):
                helped += self._push(need, path)
        return helped

    def _path(
        self, start: int, helper: Sequence[bool] | None
    ) -> list[tuple[int, tuple[int, ...] | None]] | None:
        """Steps (need, kind it takes from) to room somewhere; kind None is the helper."""
        came: dict[int, tuple[int, tuple[int, ...]] | None] = {start: None}
        waiting = deque([start])
        while waiting:
            need = waiting.popleft()
            if helper is not None and helper[need]:
                return self._trace(came, need, None)
            for kind in self._kinds_of[need]:
                if self._room[kind]:
                    return self._trace(came, need, kind)
                for other in kind:
                    if other not in came and self._used.get((other, kind)):
                        came[other] = (need, kind)
                        waiting.append(other)
        return None

    def _trace(
        self,
        came: Mapping[int, tuple[int, tuple[int, ...]] | None],
        need: int,
        kind: tuple[int, ...] | None,
    ) -> list[tuple[int, tuple[int, ...] | None]]:
        steps: list[tuple[int, tuple[int, ...] | None]] = [(need, kind)]
        while (before := came[need]) is not None:
            need, taken = before
            steps.append((need, taken))
        return steps[::-1]

    def _push(self, start: int, path: Sequence[tuple[int, tuple[int, ...] | None]]) -> int:
        """Let what one has go to the one before it, along the path; what the helper gives."""
        amount = self._left[start]
        for (_, kind), (after, _) in pairwise(path):
            assert kind is not None
            amount = min(amount, self._used[after, kind])
        last = path[-1][1]
        if last is not None:
            amount = min(amount, self._room[last])
        for n, (need, kind) in enumerate(path):
            if n:
                passed = path[n - 1][1]
                assert passed is not None
                self._used[need, passed] -= amount
            if kind is not None:
                self._used[need, kind] = self._used.get((need, kind), 0) + amount
        if last is not None:
            self._room[last] -= amount
        self._left[start] -= amount
        return amount if last is None else 0
