"""The places of open jobs: waits, due, parked, ready; and the way from ready to a lease."""

from collections.abc import Mapping, Sequence

import msgspec

from windlass.domain.lifecycle.states import RUNNING, STATE_BY_CODE
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Due, Ticket, Wait
from windlass.domain.values.ids import next_attempt
from windlass.messages.sync import Assignment
from windlass.store.sql.leases import Leases
from windlass.store.sql.places import Places, Probe, due_of, tickets_of, waits_of
from windlass.store.sqlite.session import SqliteSession
from windlass.store.sqlite.statements import (
    QUERIES,
    BulkInsert,
    Row,
    counted,
    due_row,
    integers,
    wait_row,
)

_READY = BulkInsert(QUERIES["insert_ready"])
_PARKED = BulkInsert(QUERIES["insert_parked"])
_WAITS = BulkInsert(QUERIES["insert_waits"])
_DUE = BulkInsert(QUERIES["insert_due"])
_MEET = QUERIES["meet"]
_PEEK = QUERIES["peek"]
_COUNT_SPAN = QUERIES["count_ready_span"]
_REMOVE_SPAN = QUERIES["remove_ready_span"]
_REMOVE = QUERIES["remove_ready"]
_REMOVE_ONE = QUERIES["remove_ready_one"]
ALIKE = 4  # remove whole ranges if there are at least this many jobs per shape on average
_LEASE_TO = QUERIES["lease_to"]
_INSERT = BulkInsert(QUERIES["insert_leases"])
_JOBS = QUERIES["granted_jobs"]


class SqlitePlaces(Places):
    """Implements `Places` on SQLite."""

    __slots__ = ("_connection", "_execute", "_executemany", "_peeked")

    def __init__(self, session: SqliteSession) -> None:
        super().__init__(session)
        self._connection = connection = session.connection
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._peeked: list[Ticket] = []  # of the last probe, in the order of their shape

    async def add_ready(self, tickets: Sequence[Ticket]) -> None:
        _READY.run(self._connection, tickets)

    async def add_waits(self, rows: Sequence[Wait]) -> None:
        _WAITS.run(self._connection, [wait_row(row) for row in rows])

    async def add_due(self, rows: Sequence[Due]) -> None:
        _DUE.run(self._connection, [due_row(row) for row in rows])

    async def add_parked(self, tickets: Sequence[Ticket]) -> None:
        _PARKED.run(self._connection, tickets)

    async def meet(self, met: Mapping[int, int], manual: bool = False) -> list[Wait]:
        if not met:
            return []
        if manual:
            self._executemany(QUERIES["meet_manual"], sorted(met.items()))
        else:
            self.lower(met)
        return self._taken_waits("free_waits", met)

    def lower(self, met: Mapping[int, int]) -> None:
        """Lowers `unmet` of these jobs; those that reach 0 stay where they are."""
        if met:
            self._execute(_MEET, (counted(met),))

    async def pull_due(self, now: int, count: int) -> list[Due]:
        rows = self._execute(QUERIES["due_now"], (now, count)).fetchall()
        if rows:
            self._executemany(QUERIES["drop_due"], [row[:2] for row in rows])
        return due_of(rows)

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Answers each probe separately: overlapping probes find the same job twice."""
        execute = self._execute
        found: list[Ticket] = []
        for probe in probes:
            self._peeked = tickets_of(execute(_PEEK, probe))
            found += self._peeked
        return found

    async def park(self, tickets: Sequence[Ticket]) -> None:
        self.remove_ready(tickets)
        _PARKED.run(self._connection, tickets)

    def begin(self) -> None:
        """Forgets what the last transaction peeked, since it may have changed."""
        self._peeked = []

    def remove_ready(self, tickets: Sequence[Ticket]) -> None:
        """Removes peeked jobs from `ready`; all of them must be there."""
        if tickets and tickets == self._peeked[: len(tickets)]:
            # These are the first of the jobs just peeked, with no others between them.
            shape, *first = tickets[0][:3]
            self._expect_removed(_REMOVE_SPAN, (shape, *first, *tickets[-1][1:3]), tickets)
            return
        by_shape: dict[int, list[Ticket]] = {}
        for ticket in tickets:
            by_shape.setdefault(ticket[0], []).append(ticket)
        if len(tickets) < ALIKE * len(by_shape):
            self._remove_one_by_one(tickets)
            return
        for those in by_shape.values():
            jobs = [ticket[2] for ticket in those]
            span = (*min(those)[:3], *max(those)[1:3])
            between: list[Row] = self._execute(_COUNT_SPAN, span).fetchall()
            if between[0] == (len(jobs), sum(jobs)):
                self._expect_removed(_REMOVE_SPAN, span, those)
            else:
                self._expect_removed(_REMOVE, (*span, integers(jobs)), those)

    def _remove_one_by_one(self, tickets: Sequence[Ticket]) -> None:
        before = self._connection.total_changes()
        self._executemany(_REMOVE_ONE, [ticket[:3] for ticket in tickets])
        removed = self._connection.total_changes() - before
        if removed != len(tickets):
            raise LookupError(f"expected {len(tickets)} ready jobs, got {removed}")

    def _expect_removed(self, query: str, args: Row, tickets: Sequence[Ticket]) -> None:
        self._execute(query, args)
        removed = self._connection.changes()
        if removed != len(tickets):
            jobs = f"{len(tickets)} ready jobs of shape {tickets[0].shape}"
            raise LookupError(f"expected {jobs}, got {removed}")

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        shapes = self._execute(QUERIES["parked_shapes"], (limit,)).fetchall()
        places = [(limit, shape, count) for (shape,) in shapes]
        return tickets_of(self._executemany(QUERIES["best_parked"], places))

    def _taken_waits(self, query: str, ids: Sequence[int] | Mapping[int, int]) -> list[Wait]:
        if not ids:
            return []
        rows = self._execute(QUERIES[query], (integers(ids),))
        return sorted(waits_of(rows), key=lambda wait: wait.job)


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
