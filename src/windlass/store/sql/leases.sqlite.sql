-- Leases, the current attempts: the statements that only SQLite runs.

-- name: granted_jobs
-- The fields that the worker needs, in the order of the grants.
SELECT id, timeout_ms, idle_ms, spec, handed_back FROM carray(?) AS wanted
CROSS JOIN jobs ON id = wanted.value;

-- name: lease_to
-- Leases of one worker, numbered in the order of the array: the columns come from `jobs`
-- in half the time of binding them. The smaller timeout counts, if there is one.
INSERT INTO leases (
    job, attempt, lease, worker, incarnation, state, assigned_at, started_at, deadline_at,
    timeout_ms, idle_ms, limit_id
)
SELECT
    j.id, ?2, ?1 + wanted.rowid, ?3, ?4, ?6, ?7, ?8,
    CASE
        WHEN ?6 <> {state.running} THEN ?9
        ELSE ?9 + coalesce(min(j.timeout_ms, j.idle_ms), j.timeout_ms, j.idle_ms)
    END,
    j.timeout_ms, j.idle_ms, ?5
FROM carray(?10) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: insert_leases
-- The columns of a new Lease.
INSERT INTO leases (
    job, attempt, lease, worker, incarnation, state, assigned_at, started_at, deadline_at,
    timeout_ms, idle_ms, limit_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_leases
-- By primary key, in the order asked for.
SELECT
    l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
    l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
    l.queue_limit, l.suspicion, l.indices
FROM carray(?) AS wanted CROSS JOIN leases AS l ON l.job = wanted.value;

-- name: leases_of_workers
-- By the index on the worker, then sorted: a worker holds few.
SELECT
    l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
    l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
    l.queue_limit, l.suspicion, l.indices
FROM carray(?) AS wanted CROSS JOIN leases AS l ON l.worker = wanted.value
ORDER BY l.lease;

-- name: marked_leases
-- The partial index only has leases that must stop, and those of suspects: usually none.
SELECT l.worker, l.incarnation, l.job, l.attempt, l.state, l.reason, l.suspicion
FROM carray(?) AS wanted CROSS JOIN leases AS l
ON l.worker = wanted.value AND (l.reason IS NOT NULL OR l.suspicion > 0)
ORDER BY l.lease;

-- name: start_leases
-- Only assigned leases become running.
UPDATE leases SET state = {state.running}, started_at = ?2, deadline_at = ?3 WHERE job = ?1 AND state = {state.assigned};

-- name: mark_leases
-- Must stop; the row stays until the worker reports or is lost.
UPDATE leases SET state = ?2, reason = ?3 WHERE job IN carray(?1);

-- name: suspect_leases
-- By primary key, right after the grant.
UPDATE leases SET suspicion = ?2 WHERE job IN carray(?1);

-- name: touch_leases
-- Activity moves the deadline of jobs with an idle timeout.
UPDATE leases SET activity_at = ?2, deadline_at = ?3 WHERE job = ?1;

-- name: allow_leases
-- The duration of the media is known now, and sets the timeout.
UPDATE leases SET timeout_ms = ?2, deadline_at = ?3 WHERE job = ?1;

-- name: drop_leases
-- The attempts are over.
DELETE FROM leases WHERE job IN carray(?);

-- name: count_leases
-- Leases that a worker already holds count against its slots.
SELECT l.worker, count(*) FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.worker = wanted.value GROUP BY l.worker;
