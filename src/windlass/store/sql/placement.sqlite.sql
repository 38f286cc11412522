-- Concurrency limits, loads, rates, reservations and shares: the statements that only SQLite runs.

-- name: loads
-- By the index on the worker; a worker holds few.
SELECT l.worker, j.shape, count(*)
FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.worker = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
GROUP BY l.worker, j.shape ORDER BY l.worker, j.shape;

-- name: held_indices
-- By the index on the worker; a worker holds few.
SELECT l.worker, l.job, l.indices
FROM carray(?) AS wanted CROSS JOIN leases AS l ON l.worker = wanted.value
WHERE l.indices IS NOT NULL ORDER BY l.worker, l.job;

-- name: hold_indices
-- By primary key, right after the lease was made.
UPDATE leases SET indices = ?2 WHERE job = ?1;

-- name: preemptible
-- Scans all leases when jobs of a preempting queue wait. 4 is running, 16 the flag.
SELECT l.job, l.worker, j.shape, j.rank, l.reason IS NOT NULL
FROM leases AS l CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND j.flags & {flag.preemptible} ORDER BY l.lease DESC;

-- name: unbound_leases
-- Scans all leases when a limit is set, and then every few seconds.
SELECT l.job FROM leases AS l CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.queue_limit IS NULL AND j.shape IN carray(?) ORDER BY l.job;

-- name: bind_leases
-- By primary key.
UPDATE leases SET queue_limit = ?2 WHERE job IN carray(?1);

-- name: add_rate
-- The first job under this key.
INSERT OR IGNORE INTO rates (namespace, key, keep, starts) VALUES (?, ?, 0, '[]');

-- name: put_rates
-- Including the starts of this claim.
UPDATE rates SET keep = ?3, starts = ?4 WHERE namespace = ?1 AND key = ?2;

-- name: release
-- By primary key.
DELETE FROM reservations WHERE worker IN carray(?);

-- name: limit_id
-- By the unique key.
SELECT id FROM limits WHERE namespace = ? AND key = ?;

-- name: insert_limit
-- A key seen for the first time; nothing is leased under it yet.
INSERT INTO limits (id, namespace, key, max, leased) VALUES (?, ?, ?, ?, 0);

-- name: set_limit
-- The newest submit sets the maximum.
UPDATE limits SET max = ?2 WHERE id = ?1;

-- name: read_limits
-- In the order asked for.
SELECT l.id, l.namespace, l.key, l.max, l.leased
FROM carray(?) AS wanted CROSS JOIN limits AS l ON l.id = wanted.value;

-- name: parked_limits
-- A loose index scan over the limits under which jobs are parked.
WITH RECURSIVE holding (limit_id) AS (
    SELECT min(limit_id) FROM parked
    UNION ALL
    SELECT (SELECT min(limit_id) FROM parked WHERE limit_id > holding.limit_id)
    FROM holding WHERE holding.limit_id IS NOT NULL
)
SELECT limit_id FROM holding WHERE limit_id IS NOT NULL;

-- name: bump_limits
-- Slots taken and freed.
UPDATE limits SET leased = leased + ?2 WHERE id = ?1;
