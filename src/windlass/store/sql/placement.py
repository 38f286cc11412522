"""What limits a claim: concurrency keys, loads of workers, rates, reservations, shares."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.rows.records import (
    LimitRow,
    RateRow,
    Reservation,
)
from windlass.store.sql.session import Role

RateKey = tuple[str, str]  # namespace, key


class Load(NamedTuple):
    """How many leases of one shape a worker holds."""

    worker: int
    shape: int
    leases: int


class HeldIndices(NamedTuple):
    """The indices that a lease holds of its worker's indexed resources."""

    worker: int
    job: int
    indices: str  # as `Lease.indices`


class Preemptible(NamedTuple):
    """A running lease that may be taken back; `told`: its worker was already told to stop."""

    job: int
    worker: int
    shape: int
    rank: int
    told: int


class PlacementRead(Role):
    """Reads what workers have in use, reservations and shares."""

    __slots__ = ()

    async def loads(self, workers: Sequence[int]) -> list[Load]:
        """Returns what these workers hold, by shape; ascending by worker and shape."""
        if not workers:
            return []
        return await self._session.rows(Load, "loads", self._session.ids(workers))

    async def indices(self, workers: Sequence[int]) -> list[HeldIndices]:
        """Returns the indices that leases of these workers hold; ascending by worker and job."""
        if not workers:
            return []
        return await self._session.rows(HeldIndices, "held_indices", self._session.ids(workers))

    async def running(self) -> dict[int, int]:
        """Returns the number of leases of the whole fleet, by shape; scans all of them."""
        return dict(await self._session.fetch("running_by_shape"))

    async def preemptible(self) -> list[Preemptible]:
        """Returns running leases of jobs with the flag `PREEMPTIBLE`, youngest first; scans all."""
        return await self._session.rows(Preemptible, "preemptible")

    async def reservations(self) -> list[Reservation]:
        """Returns all reservations, ascending by worker; there are few."""
        return await self._session.rows(Reservation, "reservations")

    async def namespace_weights(self) -> Mapping[str, int]:
        """Returns the weights that were set, ascending by namespace."""
        return dict(await self._session.fetch("namespace_weights"))


class Placement(PlacementRead, ABC):
    """What workers have in use, limits of queues on leases, rates, reservations, shares."""

    __slots__ = ()

    async def unbound(self, shapes: Sequence[int]) -> list[int]:
        """Locks leases of these shapes that count under no queue's limit; returns their jobs,
        ascending.
        """
        if not shapes:
            return []
        rows = await self._session.fetch("unbound_leases", self._session.ids(shapes))
        return [row[0] for row in rows]

    async def bind(self, jobs: Sequence[int], limit: int | None) -> None:
        """Counts these leases under the limit of their queue."""
        if jobs:
            await self._session.execute("bind_leases", self._session.ids(jobs), limit)

    async def hold(self, rows: Sequence[tuple[int, str]]) -> None:
        """Records which indices the leases of these jobs hold, given as (job, indices)."""
        await self._session.many("hold_indices", "io", rows)

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        """Writes rates that the caller has locked."""
        await self._session.many("put_rates", "ooio", rows)

    async def reserve(self, row: Reservation) -> bool:
        """Reserves a worker for a job; returns False if either already has a reservation."""
        return bool(await self._session.fetch("reserve", *row))

    async def release(self, workers: Sequence[int]) -> None:
        """Removes the reservations of these workers."""
        if workers:
            await self._session.execute("release", self._session.ids(workers))

    async def set_namespace_weight(self, namespace: str, weight: int) -> None:
        await self._session.execute("set_namespace_weight", namespace, weight)

    @abstractmethod
    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        """Locks these rates in order; adds new ones, without starts. Unless `wait`, it locks only
        free ones.
        """


class LimitsRead(Role):
    """Reads rows of `limits`: concurrency keys."""

    __slots__ = ()

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Returns these limits, not locked; unknown ids are absent."""
        return await self._by_id("read_limits", ids)

    async def parked(self) -> list[int]:
        """Returns the limits under which jobs are parked, ascending."""
        return [row[0] for row in await self._session.fetch("parked_limits")]

    async def _by_id(self, query: str, ids: Sequence[int]) -> dict[int, LimitRow]:
        if not ids:
            return {}
        rows = await self._session.rows(LimitRow, query, self._session.ids(ids))
        return {row.id: row for row in rows}


class Limits(LimitsRead, ABC):
    """Reads and writes rows of `limits`: concurrency keys. Unknown limits are ignored."""

    __slots__ = ()

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._by_id("lock_limits", ids)

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Does the same without waiting: limits that another transaction holds are absent."""
        return await self._by_id("lock_free_limits", ids)

    async def bump(self, deltas: Mapping[int, int]) -> None:
        """Adds to `leased` of these limits, which the caller has locked."""
        await self._session.many("bump_limits", "ii", sorted(deltas.items()))

    @abstractmethod
    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Returns ids of limits given as (namespace, key, max); existing ones get the new `max`."""
