"""The places where open jobs wait: waits, due, parked, ready."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.rows.records import Due, JobFacts, Ticket, Wait
from windlass.ports.store import Head, Probe
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import (
    Row,
    as_due,
    as_head,
    as_ticket,
    as_wait,
    counted,
    due_row,
    integers,
    wait_row,
)
from windlass.store.sqlite.statements import QUERIES

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

ALIKE = 4  # jobs of a shape on average from which on their stretches are removed


class SqlitePlaces:
    """`PlacesWrite` over one connection. What is taken comes back ascending by job."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._peeked: list[Ticket] = []  # by the last probe, in the order of their shape

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

    async def waits(self, ids: Sequence[int]) -> dict[int, Wait]:
        if not ids:
            return {}
        rows = self._execute(QUERIES["waiting"], (integers(sorted(ids)),))
        return {row[0]: as_wait(row) for row in rows}

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.waits(ids)

    async def hold(self, ids: Sequence[int]) -> None:
        """Transactions run one after another."""

    async def take_waits(self, ids: Sequence[int]) -> list[Wait]:
        return self._taken_waits("take_waits", ids)

    async def take_due(self, ids: Sequence[int]) -> list[Due]:
        if not ids:
            return []
        rows = self._execute(QUERIES["take_due"], (integers(ids),))
        return sorted(map(as_due, rows), key=lambda due: due.job)

    async def take_parked(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        places = [(fact.limit, fact.shape, fact.rank, fact.id) for fact in sorted(facts)]
        return list(map(as_ticket, self._executemany(QUERIES["take_parked"], places)))

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        places = [(fact.shape, fact.rank, fact.id) for fact in sorted(facts)]
        return list(map(as_ticket, self._executemany(QUERIES["take_ready"], places)))

    async def pull_due(self, now: int, count: int) -> list[Due]:
        rows = self._execute(QUERIES["due_now"], (now, count)).fetchall()
        if rows:
            self._executemany(QUERIES["drop_due"], [row[:2] for row in rows])
        return list(map(as_due, rows))

    async def next_due(self) -> int:
        rows: list[Row] = self._execute(QUERIES["next_due"]).fetchall()
        return int(rows[0][0])

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Answers each probe by itself: two that overlap find the same job twice."""
        execute = self._execute
        found: list[Ticket] = []
        for probe in probes:
            self._peeked = list(map(as_ticket, execute(_PEEK, probe)))
            found += self._peeked
        return found

    async def ready(self, probes: Sequence[Probe]) -> list[Ticket]:
        return [as_ticket(row) for probe in probes for row in self._execute(_PEEK, probe)]

    async def park(self, tickets: Sequence[Ticket]) -> None:
        self.remove_ready(tickets)
        _PARKED.run(self._connection, tickets)

    def begin(self) -> None:
        """Forgets what the last transaction peeked: it may have changed since."""
        self._peeked = []

    def remove_ready(self, tickets: Sequence[Ticket]) -> None:
        """Removes jobs that were peeked from `ready`; all of them must stand there."""
        if tickets and tickets == self._peeked[: len(tickets)]:
            # The first of what was just peeked: nothing else stands between them.
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

    async def heads(self) -> list[Head]:
        return list(map(as_head, self._execute(QUERIES["heads"])))

    async def count_ready(self, limit: int, shape: int) -> int:
        rows: list[Row] = self._execute(QUERIES["count_ready"], (limit, shape)).fetchall()
        return int(rows[0][0])

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        shapes = self._execute(QUERIES["parked_shapes"], (limit,)).fetchall()
        places = [(limit, shape, count) for (shape,) in shapes]
        return list(map(as_ticket, self._executemany(QUERIES["best_parked"], places)))

    async def worst_ready(self, limit: int, shape: int) -> Ticket | None:
        rows = self._execute(QUERIES["worst_ready"], (limit, shape)).fetchall()
        return as_ticket(rows[0]) if rows else None

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        places = [(ticket.limit, ticket.shape, ticket.rank, ticket.job) for ticket in tickets]
        self._executemany(QUERIES["unpark"], places)

    def _taken_waits(self, query: str, ids: Sequence[int] | Mapping[int, int]) -> list[Wait]:
        if not ids:
            return []
        rows = self._execute(QUERIES[query], (integers(ids),))
        return sorted(map(as_wait, rows), key=lambda wait: wait.job)
