"""What limits a claim beside keys: loads of workers, rates, reservations, shares."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import RateRow, Reservation
from windlass.ports.store.fleet.placement import HeldIndices, Load, Preemptible, RateKey
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Session


class PostgresPlacement:
    """`PlacementWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def loads(self, workers: Sequence[int]) -> list[Load]:
        if not workers:
            return []
        return list(map(Load._make, await self._session.fetch("loads", ascending(workers))))

    async def indices(self, workers: Sequence[int]) -> list[HeldIndices]:
        if not workers:
            return []
        rows = await self._session.fetch("held_indices", ascending(workers))
        return list(map(HeldIndices._make, rows))

    async def running(self) -> dict[int, int]:
        return dict(map(tuple, await self._session.fetch("running_by_shape")))

    async def preemptible(self) -> list[Preemptible]:
        return list(map(Preemptible._make, await self._session.fetch("preemptible")))

    async def unbound(self, shapes: Sequence[int]) -> list[int]:
        if not shapes:
            return []
        return [r[0] for r in await self._session.fetch("unbound_leases", integers(shapes))]

    async def bind(self, jobs: Sequence[int], limit: int | None) -> None:
        if jobs:
            await self._session.execute("bind_leases", ascending(jobs), limit)

    async def hold(self, rows: Sequence[tuple[int, str]]) -> None:
        if rows:
            jobs, indices = zip(*sorted(rows), strict=True)
            await self._session.execute("hold_indices", integers(jobs), indices)

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        if not keys:
            return {}
        names = [namespace for namespace, _ in keys], [key for _, key in keys]
        lock = "lock_rates" if wait else "lock_free_rates"
        rows = await self._session.fetch(lock, *names)
        if len(rows) < len(keys):
            known = {(r[0], r[1]) for r in await self._session.fetch("known_rates", *names)}
            new = [key for key in sorted(keys) if key not in known]
            if new and wait:
                # Without waiting there is none either for another transaction's new row.
                spaces, texts = zip(*new, strict=True)
                await self._session.execute("add_rates", spaces, texts)
                rows = await self._session.fetch(lock, *names)
        return {(row[0], row[1]): RateRow._make(row) for row in rows}

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        if rows:
            spaces, keys, keeps, starts = zip(*rows, strict=True)
            await self._session.execute("put_rates", spaces, keys, integers(keeps), starts)

    async def reservations(self) -> list[Reservation]:
        return list(map(Reservation._make, await self._session.fetch("reservations")))

    async def reserve(self, row: Reservation) -> bool:
        return bool(await self._session.fetch("reserve", *row))

    async def release(self, workers: Sequence[int]) -> None:
        if workers:
            await self._session.execute("release", ascending(workers))

    async def namespace_weights(self) -> Mapping[str, int]:
        return dict(map(tuple, await self._session.fetch("namespace_weights")))

    async def set_namespace_weight(self, namespace: str, weight: int) -> None:
        await self._session.execute("set_namespace_weight", namespace, weight)
