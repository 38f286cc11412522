"""The role of a transaction that keeps what limits a claim beside keys: loads, rates, holds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from windlass.domain.rows.records import RateRow, Reservation

RateKey = tuple[str, str]  # namespace, key


class Load(NamedTuple):
    """How many leases of one shape a worker holds."""

    worker: int
    shape: int
    leases: int


class HeldIndices(NamedTuple):
    """What a lease holds of its worker's indexed resources."""

    worker: int
    job: int
    indices: str  # as `Lease.indices`


class Preemptible(NamedTuple):
    """A running lease that may be taken back; `told`: its worker is to stop already."""

    job: int
    worker: int
    shape: int
    rank: int
    told: int


class PlacementRead(Protocol):
    """Reads what workers have in use, reservations and shares."""

    async def loads(self, workers: Sequence[int]) -> list[Load]:
        """Returns what these workers hold, by shape; ascending by worker and shape."""
        ...

    async def indices(self, workers: Sequence[int]) -> list[HeldIndices]:
        """Returns the indices that leases of these workers hold; ascending by worker and job."""
        ...

    async def running(self) -> dict[int, int]:
        """Returns leases of the whole fleet, by shape: a walk over all of them."""
        ...

    async def preemptible(self) -> list[Preemptible]:
        """Returns running leases of jobs with the flag `PREEMPTIBLE`, youngest first; scans all."""
        ...

    async def reservations(self) -> list[Reservation]:
        """Returns all of them, ascending by worker: there are few."""
        ...

    async def namespace_weights(self) -> Mapping[str, int]:
        """Returns those that were set, ascending by namespace."""
        ...


class PlacementWrite(PlacementRead, Protocol):
    """What workers have in use, limits of queues on leases, rates, reservations, shares."""

    async def unbound(self, shapes: Sequence[int]) -> list[int]:
        """Locks leases of these shapes that count under no queue's limit; their jobs, ascending."""
        ...

    async def bind(self, jobs: Sequence[int], limit: int | None) -> None:
        """Counts these leases under the limit of their queue."""
        ...

    async def hold(self, rows: Sequence[tuple[int, str]]) -> None:
        """(job, indices): the leases of these jobs hold these indices."""
        ...

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        """Locks these rates in order, new ones without a start; unless `wait`, only free ones."""
        ...

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        """Writes rates that the caller has locked."""
        ...

    async def reserve(self, row: Reservation) -> bool:
        """Keeps a worker for a job; False if the one or the other has a reservation."""
        ...

    async def release(self, workers: Sequence[int]) -> None:
        """Removes the reservations of these workers."""
        ...

    async def set_namespace_weight(self, namespace: str, weight: int) -> None: ...
