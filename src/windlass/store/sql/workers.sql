-- Workers.

-- name: read_worker_name
-- The same by name.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE name = $1;

-- name: lock_worker_name
-- Enrolment knows the name only.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE name = $1 FOR NO KEY UPDATE;

-- name: insert_worker
-- Two enrolments of one name at once: the second waits for the first and answers nothing.
INSERT INTO workers (id, name, incarnation, seq, status, last_seen, last_lease, slots, static,
                     dynamic, troubles, reason, enrolled_at)
VALUES (nextval('worker_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (name) DO NOTHING RETURNING id;

-- name: keep_worker_name
-- History goes on naming it.
INSERT INTO past_workers (id, name) SELECT id, name FROM workers WHERE id = $1
ON CONFLICT DO NOTHING;

-- name: trim_worker_names
-- Ids rise, so this bounds their number.
DELETE FROM past_workers WHERE id < $1;

-- name: remove_worker
-- Its leases become orphans.
DELETE FROM workers WHERE id = $1;

-- name: all_workers
-- A fleet is thousands, not millions.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers ORDER BY id;

-- name: silent_workers
-- A walk over the fleet by the health loop: an index on last_seen would slow every sync.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE last_seen < $1 AND status = ANY ($2::text::smallint[]) ORDER BY id;

-- name: troubled_workers
-- The same walk.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE troubles IS NOT NULL ORDER BY id;

-- name: put_past_metadata
-- Reported again, it counts from its last day.
INSERT INTO past_metadata (worker, digest, until, dynamic) VALUES ($1, $2, $3, $4)
ON CONFLICT (worker, digest) DO UPDATE SET until = excluded.until, dynamic = excluded.dynamic;

-- name: trim_past_metadata
-- Some workers report something else at every heartbeat.
DELETE FROM past_metadata WHERE worker = $1 AND (until < $2 OR digest NOT IN (
    SELECT digest FROM past_metadata WHERE worker = $1 ORDER BY until DESC, digest LIMIT $3
));

-- name: past_metadata
-- Of all workers: each has a few.
SELECT worker, digest, until, dynamic FROM past_metadata WHERE until >= $1
ORDER BY worker, digest;

-- name: remove_past_metadata
-- Along with the worker.
DELETE FROM past_metadata WHERE worker = $1;
