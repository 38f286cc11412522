"""What limits a claim beside keys: loads of workers, rates, reservations, shares."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import RateRow, Reservation
from windlass.ports.store.fleet.placement import HeldIndices, Load, Preemptible
from windlass.store.sql.session import Role


class Placement(Role):
    """`PlacementWrite`, but for the locks on rates."""

    __slots__ = ()

    async def loads(self, workers: Sequence[int]) -> list[Load]:
        if not workers:
            return []
        return await self._session.rows(Load, "loads", self._session.ids(workers))

    async def indices(self, workers: Sequence[int]) -> list[HeldIndices]:
        if not workers:
            return []
        return await self._session.rows(HeldIndices, "held_indices", self._session.ids(workers))

    async def running(self) -> dict[int, int]:
        return dict(await self._session.fetch("running_by_shape"))

    async def preemptible(self) -> list[Preemptible]:
        return await self._session.rows(Preemptible, "preemptible")

    async def unbound(self, shapes: Sequence[int]) -> list[int]:
        if not shapes:
            return []
        rows = await self._session.fetch("unbound_leases", self._session.ids(shapes))
        return [row[0] for row in rows]

    async def bind(self, jobs: Sequence[int], limit: int | None) -> None:
        if jobs:
            await self._session.execute("bind_leases", self._session.ids(jobs), limit)

    async def hold(self, rows: Sequence[tuple[int, str]]) -> None:
        await self._session.many("hold_indices", "io", rows)

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        await self._session.many("put_rates", "ooio", rows)

    async def reservations(self) -> list[Reservation]:
        return await self._session.rows(Reservation, "reservations")

    async def reserve(self, row: Reservation) -> bool:
        return bool(await self._session.fetch("reserve", *row))

    async def release(self, workers: Sequence[int]) -> None:
        if workers:
            await self._session.execute("release", self._session.ids(workers))

    async def namespace_weights(self) -> Mapping[str, int]:
        return dict(await self._session.fetch("namespace_weights"))

    async def set_namespace_weight(self, namespace: str, weight: int) -> None:
        await self._session.execute("set_namespace_weight", namespace, weight)
