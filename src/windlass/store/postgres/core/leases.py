"""Rows of `leases`: the attempts in force."""

from collections.abc import Sequence

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Lease, Ticket
from windlass.domain.values.ids import next_attempt
from windlass.ports.store import Marked
from windlass.store.postgres.columns import ascending, integers, spread
from windlass.store.postgres.session import Rows, Session
from windlass.wire.sync import Assignment


class PostgresLeases:
    """`LeasesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def grant(
        self,
        given: Sequence[tuple[Ticket, Demand]],
        state: int,
        now: int,
        slack_ms: int,
        least_attempt: int = 0,
    ) -> list[Assignment]:
        if not given:
            return []
        tickets, demands = zip(*given, strict=True)
        shapes, ranks, jobs, past, _, limits, _ = zip(*tickets, strict=True)
        workers, incarnations, *_ = zip(*demands, strict=True)
        attempts = [attempt + 1 for attempt in past]
        if least_attempt:
            attempts = [next_attempt(attempt, least_attempt) for attempt in past]
        args = spread("iiiiii", [attempts, workers, incarnations, shapes, ranks, limits])
        arrays, scalars = args[:6], args[6:]
        rows = await self._session.fetch(
            "grant", integers(jobs), *arrays, state, now, *scalars, slack_ms
        )
        name, raw = str(STATE_BY_CODE[state]), msgspec.Raw
        return [
            Assignment(
                job, attempt, lease, name, timeout_ms, idle_ms, raw(spec), handed_back=handed_back
            )
            for job, attempt, lease, timeout_ms, idle_ms, spec, handed_back in rows
        ]

    async def lock(self, jobs: Sequence[int]) -> dict[int, Lease]:
        return await self._leases("lock_leases", jobs)

    async def read(self, jobs: Sequence[int]) -> dict[int, Lease]:
        return await self._leases("read_leases", jobs)

    async def _leases(self, query: str, jobs: Sequence[int]) -> dict[int, Lease]:
        if not jobs:
            return {}
        make = Lease._make
        rows = await self._session.fetch(query, ascending(jobs))
        return {row[0]: make(row) for row in rows}

    async def of_workers(self, workers: Sequence[int]) -> list[Lease]:
        if not workers:
            return []
        return leases_of(await self._session.fetch("leases_of_workers", ascending(workers)))

    async def count(self, workers: Sequence[int]) -> dict[int, int]:
        if not workers:
            return {}
        return dict(map(tuple, await self._session.fetch("count_leases", ascending(workers))))

    async def marked(self, workers: Sequence[int]) -> list[Marked]:
        if not workers:
            return []
        rows = await self._session.fetch("marked_leases", ascending(workers))
        return list(map(Marked._make, rows))

    async def overdue(self, now: int, count: int) -> list[Lease]:
        return leases_of(await self._session.fetch("overdue_leases", now, count))

    async def orphans(self, count: int) -> list[Lease]:
        return leases_of(await self._session.fetch("orphaned_leases", count))

    async def start(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("start_leases", *columns)

    async def mark(self, jobs: Sequence[int], state: int, reason: str) -> None:
        if jobs:
            await self._session.execute("mark_leases", ascending(jobs), state, reason)

    async def suspect(self, jobs: Sequence[int], suspicion: int) -> None:
        if jobs:
            await self._session.execute("suspect_leases", ascending(jobs), suspicion)

    async def touch(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("touch_leases", *columns)

    async def allow(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("allow_leases", *columns)

    async def drop(self, jobs: Sequence[int]) -> None:
        if jobs:
            await self._session.execute("drop_leases", ascending(jobs))


def leases_of(rows: Rows) -> list[Lease]:
    return list(map(Lease._make, rows))
