-- Concurrency limits: the statements that only SQLite runs.

-- name: limit_id
-- By the unique key.
SELECT id FROM limits WHERE namespace = ? AND key = ?;

-- name: insert_limit
-- A key seen for the first time; nothing is leased under it yet.
INSERT INTO limits (id, namespace, key, max, leased) VALUES (?, ?, ?, ?, 0);

-- name: set_limit
-- The newest submit says how many.
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
