"""PostgreSQL, *same rows*: bare SQL that writes exactly the rows the engine writes.

The statements are the fastest known for each row (docs/decisions): arrays of integers go
as text, what is equal in all rows goes as a scalar, and events share rows as the engine's
do. Each loop finishes and claims in one transaction, as a sync does.
"""

from collections.abc import Callable
from typing import Any

import asyncpg

from benchmarks.drive import MAX_SLOTS, RESULT_BYTES
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.session import integers

SLACK_MS = 10_000 + 30_000
LOWEST = (-(2**63), 0)

CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT ctid FROM ready WHERE shape = $1 AND (rank, job) > ($2, $3)
    ORDER BY rank, job LIMIT $4 FOR UPDATE SKIP LOCKED
), taken AS MATERIALIZED (
    DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT ctid FROM picked))
    RETURNING job, rank, attempt, limit_id
), given AS MATERIALIZED (
    SELECT t.job, t.rank, t.attempt + 1 AS attempt, t.limit_id, j.timeout_ms, j.idle_ms, j.spec,
           nextval('lease_numbers') AS lease
    FROM taken t JOIN jobs j ON j.id = t.job
), leased AS (
    INSERT INTO leases (job, attempt, lease, worker, incarnation, state, assigned_at,
                        started_at, deadline_at, timeout_ms, idle_ms, limit_id)
    SELECT job, attempt, lease, $5, $6, 4, $7, $7,
           $7 + least(timeout_ms, idle_ms) + $8, timeout_ms, idle_ms, limit_id
    FROM given
)
SELECT job, attempt, lease, rank, timeout_ms, idle_ms, spec FROM given
"""
EVENTS = """
INSERT INTO events (at, kind, job, attempt, worker, incarnation, "from", via, "to", jobs, seq)
SELECT $1, 1, u.jobs[n], $5, $2, $3, $6, $7::smallint, $8, u.jobs[n : n + 199], (
    SELECT max(nextval('event_numbers'))
    FROM generate_series(1, cardinality(u.jobs[n : n + 199]) * $9)
)
FROM (SELECT $4::text::bigint[]) AS u (jobs), generate_series(1, cardinality(u.jobs), 200) AS n
"""
TWO_EVENTS = (2, 3, 4, 2)  # from, via, to, events for each job
ONE_EVENT = (4, None, 8, 1)
LOCK = """
SELECT id, state, flags, failed, lost FROM jobs
WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE
"""
DROP = """
DELETE FROM leases WHERE job = ANY ($1::text::bigint[])
RETURNING job, attempt, assigned_at, started_at, worker, incarnation
"""
END = """
UPDATE jobs j SET state = 8, attempt = u.attempt, assigned_at = u.assigned_at,
    started_at = u.started_at, finished_at = $1, worker = $2, incarnation = $3, failure = 0,
    result = u.result
FROM unnest($4::text::bigint[], $5::text::integer[], $6::text::bigint[], $7::text::bigint[],
            $8::bytea[]) AS u (job, attempt, assigned_at, started_at, result)
WHERE j.id = u.job
"""
BUMP = "INSERT INTO counters (name, value) VALUES ('depth:default', $1)"
ENROL = """
INSERT INTO workers (id, name, incarnation, seq, status, last_seen, last_lease, slots, static,
                     dynamic, enrolled_at)
VALUES ($1, $2, 1, 0, 1, $4, 0, $3, '{}', '{}', $4)
"""
HOLD = "SELECT FROM workers WHERE id = $1 FOR NO KEY UPDATE"

Held = list[tuple[int, int]]  # job, attempt


class RawWorker:
    """One connection that finishes and claims."""

    def __init__(
        self, connection: "asyncpg.Connection[Any]", worker: int, now: Callable[[], int]
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._now = now
        self._bound = LOWEST
        self._held: Held = []

    @classmethod
    async def connect(cls, dsn: str, worker: int, name: str, now: Callable[[], int]) -> "RawWorker":
        connection = await open_connection(dsn)
        await connection.execute(ENROL, worker, name, MAX_SLOTS, now())
        return cls(connection, worker, now)

    async def close(self) -> None:
        await self._connection.close()

    async def drain(self, batch: int) -> int:
        """Claim and complete until nothing is left; how many jobs."""
        jobs = 0
        while given := await self.sync(batch):
            jobs += given
        return jobs

    async def sync(self, want: int) -> int:
        """Finish what is held and claim `want` others, in one transaction."""
        now = self._now()
        await self._connection.execute("BEGIN")
        await self._connection.execute(HOLD, self._worker)
        if self._held:
            await self._finish(now)
        self._held = await self._claim(want, now) if want else []
        await self._connection.execute("COMMIT")
        return len(self._held)

    async def _finish(self, now: int) -> None:
        jobs = integers([job for job, _ in self._held])
        await self._connection.fetch(LOCK, jobs)
        ended = sorted(await self._connection.fetch(DROP, jobs))
        if [(row[0], row[1]) for row in ended if row[4] == self._worker] != self._held:
            raise RuntimeError(f"expected {len(self._held)} leases of worker {self._worker}")
        columns = [integers(column) for column in list(zip(*ended, strict=True))[:4]]
        who = (now, self._worker, 1)
        await self._connection.execute(END, *who, *columns, [RESULT_BYTES] * len(ended))
        await self._log(who, self._held, ONE_EVENT)

    async def _claim(self, want: int, now: int) -> Held:
        who = (self._worker, 1, now, SLACK_MS)
        rows = await self._connection.fetch(CLAIM, 1, *self._bound, want, *who)
        if not rows and self._bound != LOWEST:
            self._bound = LOWEST
            rows = await self._connection.fetch(CLAIM, 1, *self._bound, want, *who)
        if not rows:
            return []
        held = sorted((row[0], row[1]) for row in rows)
        self._bound = max((row[3], row[0]) for row in rows)
        await self._connection.execute(BUMP, -len(rows))
        await self._log((now, self._worker, 1), held, TWO_EVENTS)
        return held

    async def _log(self, who: tuple[int, int, int], held: Held, path: tuple[object, ...]) -> None:
        """Writes the same events of jobs that are all on the same attempt."""
        attempt, jobs = held[0][1], integers([job for job, _ in held])
        if any(its != attempt for _, its in held):
            raise RuntimeError(f"expected all jobs on attempt {attempt}")
        await self._connection.execute(EVENTS, *who, jobs, attempt, *path)
