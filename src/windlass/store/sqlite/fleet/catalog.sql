-- Shapes, queues and settings.
-- `carray(?)` is an array of integers bound as one parameter; CROSS JOIN keeps it the outer loop,
-- so that rows come in the array's order. An INSERT that ends in VALUES (…) is also executed for
-- many rows at once (bulk.py).

-- name: shape_id
-- By the unique digest.
SELECT id FROM shapes WHERE digest = ?;

-- name: insert_shape
-- Many jobs, few shapes.
INSERT INTO shapes (id, digest, body) VALUES (?, ?, ?);

-- name: shapes_after
-- Engines remember the last one they know.
SELECT id, digest, body FROM shapes WHERE id > ? ORDER BY id;

-- name: queues
-- Ascending by name, as the primary key has them.
SELECT name, weight, paused, max_running, max_per_worker, preempts, limit_id, isolation
FROM queues ORDER BY name;

-- name: put_queue
-- Paused, resumed or reweighted.
INSERT OR REPLACE INTO queues (
    name, weight, paused, max_running, max_per_worker, preempts, limit_id, isolation
) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: meta
-- Settings that live in the store.
SELECT name, value FROM meta ORDER BY name;

-- name: set_meta
-- One setting.
INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?);

-- name: advance_meta
-- Nobody has moved it meanwhile, or this was the first time.
INSERT INTO meta (name, value) VALUES (?1, ?3)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value = ?2
RETURNING value;

-- name: gaps
-- Where ids have jumped; there are few.
SELECT first, at, last_job, last_workflow, last_event, timeline_before, timeline, lost
FROM gaps ORDER BY first;

-- name: put_gap
-- A new one, or what is now known of it.
INSERT OR REPLACE INTO gaps (
    first, at, last_job, last_workflow, last_event, timeline_before, timeline, lost
) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: newest_ids
-- Each by its primary key.
SELECT
    (SELECT ifnull(max(id), 0) FROM jobs),
    (SELECT ifnull(max(id), 0) FROM workflows),
    (SELECT ifnull(max(seq), 0) FROM events);
