"""Rows of `leases`: the attempts in force."""

from collections.abc import Sequence

from windlass.domain.rows.records import Lease
from windlass.ports.store import Marked
from windlass.store.sql.session import Role


class Leases(Role):
    """`LeasesWrite`, but for the grants. Jobs without a lease are passed over."""

    __slots__ = ()

    async def read(self, jobs: Sequence[int]) -> dict[int, Lease]:
        return await self._by_job("read_leases", jobs)

    async def lock(self, jobs: Sequence[int]) -> dict[int, Lease]:
        return await self._by_job("lock_leases", jobs)

    async def _by_job(self, query: str, jobs: Sequence[int]) -> dict[int, Lease]:
        if not jobs:
            return {}
        rows = await self._session.rows(Lease, query, self._session.ids(jobs))
        return {row[0]: row for row in rows}

    async def of_workers(self, workers: Sequence[int]) -> list[Lease]:
        if not workers:
            return []
        return await self._session.rows(Lease, "leases_of_workers", self._session.ids(workers))

    async def count(self, workers: Sequence[int]) -> dict[int, int]:
        if not workers:
            return {}
        return dict(await self._session.fetch("count_leases", self._session.ids(workers)))

    async def marked(self, workers: Sequence[int]) -> list[Marked]:
        if not workers:
            return []
        return await self._session.rows(Marked, "marked_leases", self._session.ids(workers))

    async def overdue(self, now: int, count: int) -> list[Lease]:
        """Returns the earliest deadline first, equal ones by job."""
        return await self._session.rows(Lease, "overdue_leases", now, count)

    async def orphans(self, count: int) -> list[Lease]:
        """Returns them ascending by job."""
        return await self._session.rows(Lease, "orphaned_leases", count)

    async def start(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        await self._session.many("start_leases", "iii", rows)

    async def mark(self, jobs: Sequence[int], state: int, reason: str) -> None:
        if jobs:
            await self._session.execute("mark_leases", self._session.ids(jobs), state, reason)

    async def suspect(self, jobs: Sequence[int], suspicion: int) -> None:
        if jobs:
            await self._session.execute("suspect_leases", self._session.ids(jobs), suspicion)

    async def touch(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        await self._session.many("touch_leases", "iii", rows)

    async def allow(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        await self._session.many("allow_leases", "iii", rows)

    async def drop(self, jobs: Sequence[int]) -> None:
        if jobs:
            await self._session.execute("drop_leases", self._session.ids(jobs))
