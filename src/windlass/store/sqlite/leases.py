"""Turn ready jobs into leases, with as few and as wide statements as can be."""

from collections.abc import Sequence

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Ticket
from windlass.domain.values.ids import next_attempt
from windlass.messages.sync import Assignment
from windlass.store.sql.leases import Leases
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.places import SqlitePlaces
from windlass.store.sqlite.rows import Row, integers
from windlass.store.sqlite.session import SqliteSession
from windlass.store.sqlite.statements import QUERIES

RUNNING = State.RUNNING.code

_LEASE_TO = QUERIES["lease_to"]
_INSERT = BulkInsert(QUERIES["insert_leases"])
_JOBS = QUERIES["granted_jobs"]


class SqliteLeases(Leases):
    """Implements `Leases` on SQLite."""

    __slots__ = ("_connection", "_execute", "_places", "_sequences")

    def __init__(self, session: SqliteSession, places: SqlitePlaces) -> None:
        super().__init__(session)
        self._places = places
        self._connection = session.connection
        self._execute = session.connection.execute
        self._sequences = session.sequences

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
