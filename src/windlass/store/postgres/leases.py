"""Turn ready jobs into leases in one statement."""

from collections.abc import Mapping, Sequence

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Lease, Ticket
from windlass.domain.values.ids import next_attempt
from windlass.messages.sync import Assignment
from windlass.store.postgres.columns import integers, spread
from windlass.store.sql.leases import Leases


class PostgresLeases(Leases):
    """Implements `Leases` on PostgreSQL."""

    __slots__ = ()

    async def newer(self, than: Mapping[int, int]) -> list[Lease]:
        if not than:
            return []
        pairs = integers(list(than)), integers(list(than.values()))
        return await self._session.rows(Lease, "newer_leases", *pairs)

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
