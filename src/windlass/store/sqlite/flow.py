"""The way of jobs with no ties, in bulk: as few and as wide statements as can be."""

from collections.abc import Sequence

import apsw

from windlass.domain.events import EventKind, Moves, expand
from windlass.domain.records import Completion, NewJob
from windlass.domain.states import State
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import Row, integers
from windlass.store.sqlite.statements import QUERIES

RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code
JOB = int(EventKind.JOB)

_JOBS = BulkInsert(QUERIES["insert_jobs"])
_ENDS = BulkInsert(QUERIES["insert_outcomes"])
_EVENTS = BulkInsert(QUERIES["insert_events"])
_READY = BulkInsert(QUERIES["insert_ready"])
_READY_FROM_JOBS = QUERIES["ready_from_jobs"]
_PLAIN_LEASES = QUERIES["plain_leases"]
_DROP = QUERIES["drop_leases"]
_EQUAL_EVENTS = QUERIES["equal_events"]


class SqliteFlow:
    """`FlowTx` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute

    async def enter(self, rows: Sequence[NewJob]) -> None:
        if not rows:
            return
        _JOBS.run(self._connection, rows)
        first, last = rows[0].id, rows[-1].id
        # Ids ascend, so that these are all jobs from the first to the last, or there are gaps.
        if last - first == len(rows) - 1:
            self._execute(_READY_FROM_JOBS, (first, last))
        else:
            tickets = [(r.shape, r.rank, r.id, 0, r.workflow, r.limit, None) for r in rows]
            _READY.run(self._connection, tickets)

    async def complete(self, now: int, done: Sequence[Completion]) -> list[int]:
        if not done:
            return []
        reports = {item[0]: item for item in done}
        ends: list[Row] = []
        plain = self._execute(_PLAIN_LEASES, (integers(sorted(reports)),))
        for (
            job,
            attempt,
            worker,
            incarnation,
            assigned_at,
            started_at,
            flags,
            failed,
            lost,
        ) in plain:
            item = reports[job]
            if item[1:4] == (attempt, worker, incarnation):
                ends.append(
                    (job, COMPLETED, flags, attempt, failed, lost, worker, incarnation, assigned_at,
                     started_at, now, 0, item[4], None, None, item[5])
                )  # fmt: skip
        ended = [end[0] for end in ends]
        if ended:
            self._execute(_DROP, (integers(ended),))
            _ENDS.run(self._connection, ends)
        return ended

    async def log(self, moves: Moves) -> None:
        """One statement a step where all attempts have the same number, as nearly always."""
        at, worker, incarnation, steps, jobs, attempts = moves
        if not jobs:
            return
        if attempts.count(attempts[0]) != len(attempts):
            _EVENTS.run(self._connection, list(expand(moves)))
            return
        ids = integers(jobs)
        for frm, to in steps:
            self._execute(_EQUAL_EVENTS, (at, JOB, attempts[0], worker, incarnation, frm, to, ids))
