"""Rows of `leases`: the attempts in force."""

from collections.abc import Sequence

import apsw
import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Lease, Ticket
from windlass.domain.values.ids import next_attempt
from windlass.ports.store import Marked
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.core.places import SqlitePlaces
from windlass.store.sqlite.rows import Row, as_lease, as_marked, integers
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES
from windlass.wire.sync import Assignment

RUNNING = State.RUNNING.code

_LEASE_TO = QUERIES["lease_to"]
_INSERT = BulkInsert(QUERIES["insert_leases"])
_LEASES = QUERIES["leases"]
_JOBS = QUERIES["granted_jobs"]


class SqliteLeases:
    """`LeasesWrite` over one connection. Jobs without a lease are passed over."""

    def __init__(
        self, connection: apsw.Connection, sequences: Sequences, places: SqlitePlaces
    ) -> None:
        self._places = places
        self._connection = connection
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._sequences = sequences

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
        tickets = [ticket for ticket, _ in given]
        self._places.remove_ready(tickets)
        ids = integers([ticket[2] for ticket in tickets])
        jobs: list[Row] = self._execute(_JOBS, (ids,)).fetchall()
        if len(jobs) != len(given):
            raise LookupError(f"expected {len(given)} known jobs, got {len(jobs)}")
        leases = self._sequences.take("lease", len(given))
        first = leases.start
        attempts = [ticket[3] + 1 for ticket in tickets]
        if least_attempt:
            attempts = [next_attempt(ticket[3], least_attempt) for ticket in tickets]
        whose = {demand[:2] for _, demand in given}
        limits = {ticket[5] for ticket in tickets}
        attempt = attempts[0]
        if len(whose) == len(limits) == 1 and attempts.count(attempt) == len(attempts):
            worker, incarnation = whose.pop()
            started_at = now if state == RUNNING else None
            times = (state, now, started_at, now + slack_ms)
            whom = (attempt, worker, incarnation, limits.pop())
            self._execute(_LEASE_TO, (first - 1, *whom, *times, ids))
        else:
            rows = _lease_rows(given, attempts, jobs, first, state, now, slack_ms)
            _INSERT.run(self._connection, rows)
        name, raw = str(STATE_BY_CODE[state]), msgspec.Raw
        return [
            Assignment(
                job, attempt, lease, name, timeout_ms, idle_ms, raw(spec), handed_back=handed_back
            )
            for lease, attempt, (job, timeout_ms, idle_ms, spec, handed_back) in zip(
                leases, attempts, jobs, strict=True
            )
        ]

    async def read(self, jobs: Sequence[int]) -> dict[int, Lease]:
        if not jobs:
            return {}
        rows = self._execute(_LEASES, (integers(sorted(jobs)),))
        return {row[0]: as_lease(row) for row in rows}

    async def lock(self, jobs: Sequence[int]) -> dict[int, Lease]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(jobs)

    async def of_workers(self, workers: Sequence[int]) -> list[Lease]:
        if not workers:
            return []
        wanted = integers(sorted(set(workers)))
        return list(map(as_lease, self._execute(QUERIES["leases_of_workers"], (wanted,))))

    async def count(self, workers: Sequence[int]) -> dict[int, int]:
        if not workers:
            return {}
        wanted = integers(sorted(set(workers)))
        rows: list[Row] = self._execute(QUERIES["count_leases"], (wanted,)).fetchall()
        return dict(rows)

    async def marked(self, workers: Sequence[int]) -> list[Marked]:
        if not workers:
            return []
        wanted = integers(sorted(set(workers)))
        return list(map(as_marked, self._execute(QUERIES["marked"], (wanted,))))

    async def overdue(self, now: int, count: int) -> list[Lease]:
        """Returns the earliest deadline first, equal ones by job."""
        return list(map(as_lease, self._execute(QUERIES["overdue"], (now, count))))

    async def orphans(self, count: int) -> list[Lease]:
        """Returns them ascending by job."""
        return list(map(as_lease, self._execute(QUERIES["orphans"], (count,))))

    async def start(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        self._executemany(QUERIES["start_leases"], rows)

    async def mark(self, jobs: Sequence[int], state: int, reason: str) -> None:
        if jobs:
            self._execute(QUERIES["mark_leases"], (state, reason, integers(jobs)))

    async def suspect(self, jobs: Sequence[int], suspicion: int) -> None:
        if jobs:
            self._execute(QUERIES["suspect_leases"], (suspicion, integers(jobs)))

    async def touch(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        self._executemany(QUERIES["touch_leases"], rows)

    async def allow(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        self._executemany(QUERIES["allow_leases"], rows)

    async def drop(self, jobs: Sequence[int]) -> None:
        if jobs:
            self._execute(QUERIES["drop_leases"], (integers(jobs),))


def _lease_rows(
    given: Sequence[tuple[Ticket, Demand]],
    attempts: Sequence[int],
    jobs: Sequence[Row],
    first: int,
    state: int,
    now: int,
    slack_ms: int,
) -> list[Row]:
    """Returns rows for `insert_leases`."""
    running = state == RUNNING
    started_at = now if running else None
    overdue_at = now + slack_ms
    rows = []
    each = zip(given, attempts, jobs, strict=True)
    for lease, ((ticket, demand), attempt, job) in enumerate(each, first):
        worker, incarnation = demand[:2]
        number, timeout_ms, idle_ms, *_ = job
        deadline_at: int | None = overdue_at
        if running:
            limits = [ms for ms in (timeout_ms, idle_ms) if ms is not None]
            deadline_at = overdue_at + min(limits) if limits else None
        rows.append(
            (
                *(number, attempt, lease, worker, incarnation, state, now, started_at),
                *(deadline_at, timeout_ms, idle_ms, ticket[5]),
            )
        )
    return rows
