"""What limits a claim: concurrency keys, loads of workers, rates, reservations, shares."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.rows.records import LimitRow, RateRow, Reservation
from windlass.store.sql.session import Role, of_ids, query

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


class Placement(Role, ABC):
    """What workers have in use, limits of queues on leases, rates, reservations, shares."""

    __slots__ = ()

    loads = of_ids("loads").rows(Load)
    """Returns what these workers hold, by shape; ascending by worker and shape."""

    indices = of_ids("held_indices").rows(HeldIndices)
    """Returns the indices that leases of these workers hold; ascending by worker and job."""

    running = query("running_by_shape").pairs(int, int)
    """Returns the number of leases of the whole fleet, by shape; scans all of them."""

    preemptible = query("preemptible").rows(Preemptible)
    """Returns running leases of jobs with the flag `PREEMPTIBLE`, youngest first; scans all."""

    reservations = query("reservations").rows(Reservation)
    """Returns all reservations, ascending by worker; there are few."""

    namespace_weights = query("namespace_weights").pairs(str, int)
    """Returns the weights that were set, ascending by namespace."""

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

    hold = query("hold_indices").many("io", tuple[int, str])
    """Records which indices the leases of these jobs hold, given as (job, indices)."""

    put_rates = query("put_rates").many("ooio", RateRow)
    """Writes rates that the caller has locked."""

    async def reserve(self, row: Reservation) -> bool:
        """Reserves a worker for a job; returns False if either already has a reservation."""
        return bool(await self._session.fetch("reserve", *row))

    release = of_ids("release").run()
    """Removes the reservations of these workers."""

    set_namespace_weight = query("set_namespace_weight", str, int).run()

    @abstractmethod
    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        """Locks these rates in order; adds new ones, without starts. Unless `wait`, it locks only
        free ones.
        """


class Limits(Role, ABC):
    """Reads and writes rows of `limits`: concurrency keys. Unknown limits are ignored."""

    __slots__ = ()

    read = of_ids("read_limits").by_id(LimitRow)
    """Returns these limits, not locked; unknown ids are absent."""

    parked = query("parked_limits").column()
    """Returns the limits under which jobs are parked, ascending."""

    lock = of_ids("lock_limits").by_id(LimitRow)

    lock_free = of_ids("lock_free_limits").by_id(LimitRow)
    """Does the same without waiting: limits that another transaction holds are absent."""

    async def bump(self, deltas: Mapping[int, int]) -> None:
        """Adds to `leased` of these limits, which the caller has locked."""
        await self._session.many("bump_limits", "ii", sorted(deltas.items()))

    @abstractmethod
    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Returns ids of limits given as (namespace, key, max); existing ones get the new `max`."""
