"""What limits a claim beside keys: loads of workers, rates, reservations, shares."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.rows.records import RateRow, Reservation
from windlass.ports.store.fleet.placement import HeldIndices, Load, Preemptible, RateKey
from windlass.store.sqlite.rows import (
    Row,
    as_held_indices,
    as_load,
    as_preemptible,
    as_rate,
    as_reservation,
    integers,
)
from windlass.store.sqlite.statements import QUERIES


class SqlitePlacement:
    """`PlacementWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany

    async def loads(self, workers: Sequence[int]) -> list[Load]:
        if not workers:
            return []
        wanted = integers(sorted(set(workers)))
        return list(map(as_load, self._execute(QUERIES["loads"], (wanted,))))

    async def indices(self, workers: Sequence[int]) -> list[HeldIndices]:
        if not workers:
            return []
        wanted = integers(sorted(set(workers)))
        return list(map(as_held_indices, self._execute(QUERIES["held_indices"], (wanted,))))

    async def running(self) -> dict[int, int]:
        rows: list[Row] = self._execute(QUERIES["running_by_shape"]).fetchall()
        return dict(rows)

    async def preemptible(self) -> list[Preemptible]:
        return list(map(as_preemptible, self._execute(QUERIES["preemptible"])))

    async def unbound(self, shapes: Sequence[int]) -> list[int]:
        if not shapes:
            return []
        return [row[0] for row in self._execute(QUERIES["unbound_leases"], (integers(shapes),))]

    async def bind(self, jobs: Sequence[int], limit: int | None) -> None:
        if jobs:
            self._execute(QUERIES["bind_leases"], (limit, integers(jobs)))

    async def hold(self, rows: Sequence[tuple[int, str]]) -> None:
        self._executemany(QUERIES["hold_indices"], rows)

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        del wait  # transactions run one after another
        found: dict[RateKey, RateRow] = {}
        for key in sorted(keys):
            rows = self._execute(QUERIES["rate"], key).fetchall()
            if not rows:
                self._execute(QUERIES["add_rate"], key)
            found[key] = as_rate(rows[0]) if rows else RateRow(*key, 0, "[]")
        return found

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        self._executemany(QUERIES["put_rate"], rows)

    async def reservations(self) -> list[Reservation]:
        return list(map(as_reservation, self._execute(QUERIES["reservations"])))

    async def reserve(self, row: Reservation) -> bool:
        return bool(self._execute(QUERIES["reserve"], row).fetchall())

    async def release(self, workers: Sequence[int]) -> None:
        if workers:
            self._execute(QUERIES["release"], (integers(workers),))

    async def namespace_weights(self) -> Mapping[str, int]:
        rows: list[Row] = self._execute(QUERIES["namespace_weights"]).fetchall()
        return dict(rows)

    async def set_namespace_weight(self, namespace: str, weight: int) -> None:
        self._execute(QUERIES["set_namespace_weight"], (namespace, weight))
