-- The places where open jobs wait: waits, due, parked, ready: the statements that only SQLite runs.

-- name: insert_ready
-- The columns of Ticket.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_parked
-- The columns of Ticket.
INSERT INTO parked (shape, rank, job, attempt, workflow, limit_id, excluded)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_waits
-- The columns of Wait without its ticket's job.
INSERT INTO waits (
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_due
-- The columns of Due without its ticket's job.
INSERT INTO due (at, job, state, shape, rank, attempt, workflow, limit_id, excluded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: meet
-- Narrow rows by primary key: a join of 1,000 dependents touches few pages. Each value is a
-- job and, in its lowest 18 bits, how many conditions were met.
UPDATE waits SET unmet = unmet - (wanted.value & 0x3ffff)
FROM carray(?) AS wanted WHERE waits.job = wanted.value >> 18;

-- name: meet_manual
-- A manual condition is met once; a second call finds none.
UPDATE waits SET unmet = unmet - ?2, manual = {manual.no} WHERE job = ?1 AND manual <> {manual.no};

-- name: free_waits
-- Jobs with nothing left to wait for.
DELETE FROM waits WHERE job IN carray(?) AND unmet <= 0
RETURNING
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded;

-- name: read_waits
-- Wait, its ticket flattened.
SELECT
    w.job, w.unmet, w.manual, w.not_before, w.age_from, w.shape, w.rank, w.attempt,
    w.workflow, w.limit_id, w.excluded
FROM carray(?) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value;

-- name: take_waits
-- A canceled or aborted job no longer waits.
DELETE FROM waits WHERE job IN carray(?)
RETURNING
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded;

-- name: take_due
-- By the unique index on the job, since the caller does not know the time.
DELETE FROM due WHERE job IN carray(?)
RETURNING at, job, state, shape, rank, attempt, workflow, limit_id, excluded;

-- name: take_parked
-- One at a time by primary key: the caller knows each job's place.
DELETE FROM parked WHERE limit_id = ?2 AND shape = ?3 AND rank = ?4 AND job = ?1
RETURNING shape, rank, job, attempt, workflow, limit_id, excluded;

-- name: take_ready
-- One at a time by primary key: the caller knows each job's place.
DELETE FROM ready WHERE shape = ?2 AND rank = ?3 AND job = ?1
RETURNING shape, rank, job, attempt, workflow, limit_id, excluded;

-- name: due_now
-- The first entries of the primary key.
SELECT at, job, state, shape, rank, attempt, workflow, limit_id, excluded
FROM due WHERE at <= ? ORDER BY at, job LIMIT ?;

-- name: drop_due
-- The entries just read, by primary key.
DELETE FROM due WHERE at = ? AND job = ?;

-- name: peek
-- Reads along the primary key from a lower bound: its cost is the number of rows found.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready WHERE shape = ? AND (rank, job) >= (?, ?) ORDER BY rank, job LIMIT ?;

-- name: heads
-- A loose index scan: one seek per shape, however many jobs it has.
WITH RECURSIVE head (shape, rank, job) AS (
    SELECT -1, 0, 0
    UNION ALL
    SELECT r.shape, r.rank, r.job
    FROM head CROSS JOIN ready AS r ON (r.shape, r.rank, r.job) = (
        SELECT shape, rank, job FROM ready
        WHERE shape > head.shape ORDER BY shape, rank, job LIMIT 1
    )
)
SELECT shape, rank, job FROM head WHERE shape >= 0;

-- name: parked_shapes
-- A loose index scan over the shapes below one limit.
WITH RECURSIVE below (shape) AS (
    SELECT min(shape) FROM parked WHERE limit_id = ?1
    UNION ALL
    SELECT (SELECT min(shape) FROM parked WHERE limit_id = ?1 AND shape > below.shape)
    FROM below WHERE below.shape IS NOT NULL
)
SELECT shape FROM below WHERE shape IS NOT NULL;

-- name: best_parked
-- The best of one shape below one limit.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM parked WHERE limit_id = ? AND shape = ? ORDER BY rank, job LIMIT ?;

-- name: unpark
-- The rows just read, by primary key.
DELETE FROM parked WHERE limit_id = ?2 AND shape = ?3 AND rank = ?4 AND job = ?1;

-- name: count_ready_span
-- True if only the wanted jobs are between the first and the last of them.
SELECT count(*), sum(job) FROM ready
WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5);

-- name: remove_ready_one
-- A few jobs of each of many shapes: one by one.
DELETE FROM ready WHERE shape = ? AND rank = ? AND job = ?;

-- name: remove_ready_span
-- A range takes a third of the time of single keys.
DELETE FROM ready WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5);

-- name: remove_ready
-- Over the peeked jobs; others between them stay.
DELETE FROM ready
WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5) AND job IN carray(?6);
