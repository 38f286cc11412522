-- Workers.
-- `carray(?)` is an array of integers bound as one parameter; CROSS JOIN keeps it the outer loop,
-- so that rows come in the array's order. An INSERT that ends in VALUES (…) is also executed for
-- many rows at once (bulk.py).

-- name: workers
-- The columns of Worker, in the order asked for.
SELECT
    w.id, w.name, w.incarnation, w.seq, w.status, w.last_seen, w.last_lease, w.slots,
    w.static, w.dynamic, w.troubles, w.reason, w.enrolled_at
FROM carray(?) AS wanted CROSS JOIN workers AS w ON w.id = wanted.value;

-- name: worker_by_name
-- A name belongs to one worker for as long as it is enrolled.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers WHERE name = ?;

-- name: all_workers
-- Ascending by id.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers ORDER BY id;

-- name: insert_worker
-- The columns of Worker.
INSERT INTO workers (
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_workers
-- Every column of Worker.
UPDATE workers SET
    name = ?2, incarnation = ?3, seq = ?4, status = ?5, last_seen = ?6, last_lease = ?7,
    slots = ?8, static = ?9, dynamic = ?10, troubles = ?11, reason = ?12, enrolled_at = ?13
WHERE id = ?1;

-- name: beat
-- What a sync changes.
UPDATE workers SET seq = ?2, last_seen = ?3, last_lease = ?4 WHERE id = ?1;

-- name: keep_worker_name
-- History goes on naming it.
INSERT OR IGNORE INTO past_workers (id, name) SELECT id, name FROM workers WHERE id = ?;

-- name: trim_worker_names
-- Ids rise, so this bounds their number.
DELETE FROM past_workers WHERE id < ?;

-- name: remove_worker
-- Its leases become orphans, which the cleanup finds.
DELETE FROM workers WHERE id = ?;

-- name: silent_workers
-- A walk over all workers, once in a health cycle.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers WHERE last_seen < ? AND status IN carray(?) ORDER BY id;

-- name: troubled_workers
-- A walk over all workers, once in a health cycle.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers WHERE troubles IS NOT NULL ORDER BY id;

-- name: put_past_metadata
-- Reported again, it counts from its last day.
INSERT OR REPLACE INTO past_metadata (worker, digest, until, dynamic) VALUES (?, ?, ?, ?);

-- name: trim_past_metadata
-- Some workers report something else at every heartbeat.
DELETE FROM past_metadata WHERE worker = ?1 AND (until < ?2 OR digest NOT IN (
    SELECT digest FROM past_metadata WHERE worker = ?1 ORDER BY until DESC, digest LIMIT ?3
));

-- name: past_metadata
-- Of all workers: each has a few.
SELECT worker, digest, until, dynamic FROM past_metadata WHERE until >= ?
ORDER BY worker, digest;

-- name: remove_past_metadata
-- Along with the worker.
DELETE FROM past_metadata WHERE worker = ?;
