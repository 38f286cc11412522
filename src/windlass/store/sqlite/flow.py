"""Moves plain jobs in bulk, with as few and as wide statements as possible."""

from collections.abc import Mapping, Sequence

from windlass.domain.lifecycle.states import BLOCKED, COMPLETED, QUEUED
from windlass.domain.rows.events import EventKind, Moves, expand
from windlass.domain.rows.records import Completed, Freed, JobColumns, Ticket, Waited, Worker
from windlass.messages.sync import Finished
from windlass.store.sql.flow import Flow
from windlass.store.sql.session import maker
from windlass.store.sqlite.places import SqlitePlaces
from windlass.store.sqlite.session import SqliteSession
from windlass.store.sqlite.statements import COUNT_BITS, QUERIES, BulkInsert, Row, counted, integers

JOB = int(EventKind.JOB)

_JOBS = BulkInsert(QUERIES["insert_jobs"])
_ENDS = BulkInsert(QUERIES["end_jobs"])
_EVENTS = BulkInsert(QUERIES["insert_events"])
_READY = BulkInsert(QUERIES["insert_ready"])
_READY_FROM_JOBS = QUERIES["ready_from_jobs"]
_WAITS_FROM_JOBS = QUERIES["waits_from_jobs"]
_FREE = QUERIES["free_at_once"]
_READY_FROM_WAITS = QUERIES["ready_from_waits"]
_DROP_WAITS = QUERIES["drop_waits"]
_PLAIN_LEASES = QUERIES["plain_leases"]
_PLAIN_BETWEEN = QUERIES["plain_leases_between"]
_TIED_LEASES = QUERIES["tied_leases"]
_DROP = QUERIES["drop_leases"]
_EQUAL_EVENTS = QUERIES["equal_events"]
_END_BLOCKED = QUERIES["end_blocked"]
_END_READY = QUERIES["end_ready"]
_END_READY_SPAN = QUERIES["end_ready_span"]
_END_WAITING = QUERIES["end_waiting"]
_PLACES = QUERIES["places_of_jobs"]
_WAITED = QUERIES["waited"]

SPARSE = 4  # scan a range of `ready` if it may hold up to this many jobs per wanted one


class SqliteFlow(Flow):
    """Runs one statement for each step, over rows that SQLite stores by id."""

    def __init__(self, session: SqliteSession, places: SqlitePlaces) -> None:
        super().__init__(session)
        self._connection = session.connection
        self._places = places
        self._execute = session.connection.execute

    async def enter(self, rows: Sequence[JobColumns]) -> None:
        if not rows:
            return
        _JOBS.run(self._connection, rows)
        first, last = rows[0][0], rows[-1][0]
        # Ids ascend, so these are either all jobs from the first to the last, or there are gaps.
        if last - first == len(rows) - 1:
            self._execute(_READY_FROM_JOBS, (first, last))
        else:
            tickets = [(r[1], r[4], r[0], 0, r[2], r[9], None) for r in rows]
            _READY.run(self._connection, tickets)

    async def block(self, jobs: Sequence[JobColumns], unmet: Sequence[int]) -> None:
        if jobs:
            waiting = [job[0] << COUNT_BITS | left for job, left in zip(jobs, unmet, strict=True)]
            self._execute(_WAITS_FROM_JOBS, (integers(waiting),))

    async def free(self, met: Mapping[int, int], now: int, young_from: int) -> Freed:
        """Frees jobs without lowering their counts first: it selects them by the new count."""
        if not met:
            return Freed([], [])
        found: list[Row] = self._execute(_FREE, (counted(met), now, young_from)).fetchall()
        ticket = maker(Ticket)
        ready = [ticket(row[:-1]) for row in found if row[-1]]
        if ready:
            jobs = [ticket[2] for ticket in ready]
            wanted = integers(jobs)
            self._execute(_READY_FROM_WAITS, (wanted,))
            self._execute(_DROP_WAITS, (wanted,))
            met = {job: met[job] for job in met.keys() - set(jobs)}
        if len(ready) < len(found):
            return Freed(ready, await self._places.meet(met))
        self._places.lower(met)
        return Freed(ready, [])

    async def complete(self, now: int, done: Sequence[tuple[Worker, Finished]]) -> list[int]:
        if not done:
            return []
        reports = {report[1].job: report for report in done}
        ends: list[Row] = []
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
        ) in self._plain(sorted(reports)):
            reporter, item = reports[job]
            if (
                attempt == item.attempt
                and worker == reporter.id
                and incarnation == reporter.incarnation
            ):
                ends.append(
                    (job, COMPLETED, flags, attempt, failed, lost, worker, incarnation, assigned_at,
                     started_at, now, 0, item.exit_code, None, None, item.result)
                )  # fmt: skip
        ended = [end[0] for end in ends]
        if ended:
            self._execute(_DROP, (integers(ended),))
            _ENDS.run(self._connection, ends)
        return ended

    def _plain(self, jobs: list[int]) -> list[Row]:
        """Returns the leases of jobs without dependents, ascending."""
        wanted = integers(jobs)
        found: list[Row] = self._execute(_PLAIN_BETWEEN, (wanted, jobs[0], jobs[-1])).fetchall()
        if len(found) < len(jobs):  # one of them, or a job between them, may have dependents
            found = self._execute(_PLAIN_LEASES, (wanted,)).fetchall()
        return found

    async def complete_tied(
        self, now: int, done: Sequence[tuple[Worker, Finished]]
    ) -> list[Completed]:
        reports = {report[1].job: report for report in done}
        jobs = sorted(reports)
        found: list[Row] = self._execute(_TIED_LEASES, (integers(jobs),)).fetchall()
        if len(found) < len(jobs):
            return []
        ends: list[Row] = []
        ended: list[Completed] = []
        for (
            job, attempt, worker, incarnation, assigned_at, started_at, flags, failed, lost, shape,
            workflow,
        ) in found:  # fmt: skip
            reporter, item = reports[job]
            held = attempt, worker, incarnation
            if held != (item.attempt, reporter.id, reporter.incarnation):
                return []
            ends.append(
                (job, COMPLETED, flags, attempt, failed, lost, worker, incarnation, assigned_at,
                 started_at, now, 0, item.exit_code, None, None, item.result)
            )  # fmt: skip
            ended.append(Completed(job, shape, workflow))
        self._execute(_DROP, (integers(jobs),))
        _ENDS.run(self._connection, ends)
        return ended

    async def end_waiting(
        self, jobs: Sequence[int], state: int, now: int, reason: str, *, queued: bool
    ) -> list[Waited]:
        if not jobs:
            return []
        blocked = sorted(row[0] for row in self._execute(_END_BLOCKED, (integers(jobs),)))
        left = set(jobs).difference(blocked)
        ready = self._end_ready(sorted(left)) if left and queued else []
        ended: list[Waited] = []
        for gone, was in ((blocked, BLOCKED), (ready, QUEUED)):
            if gone:
                wanted = integers(gone)
                ended += map(maker(Waited), self._execute(_WAITED, (wanted, was)))
                self._execute(_END_WAITING, (wanted, state, now, reason))
        return sorted(ended) if blocked and ready else ended

    def _end_ready(self, jobs: list[int]) -> list[int]:
        """Removes the jobs that are in `ready`, whole ranges of a shape at once."""
        places: dict[int, list[Row]] = {}
        for place in self._execute(_PLACES, (integers(jobs),)):
            places.setdefault(place[0], []).append(place)
        ended: list[int] = []
        for those in places.values():
            first, last = min(those), max(those)
            span = (*first, *last[1:], integers([row[2] for row in those]))
            close = last[2] - first[2] < SPARSE * len(those)
            if close and first[1] == last[1]:
                found = self._execute(_END_READY_SPAN, span)
            else:
                found = self._execute(_END_READY, (span[-1],))
            ended += [job for (job,) in found]
        return sorted(ended)

    async def log(self, moves: Moves) -> None:
        """Runs one statement per step if all attempts have the same number, which is usual."""
        at, worker, incarnation, steps, jobs, attempts, *details = moves
        if not jobs:
            return
        if attempts.count(attempts[0]) != len(attempts):
            _EVENTS.run(self._connection, list(expand(moves)))
            return
        ids = integers(jobs)
        for source, to in steps:
            same = (at, JOB, attempts[0], worker, incarnation, source, to, *details, ids)
            self._execute(_EQUAL_EVENTS, same)
