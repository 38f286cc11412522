-- Shapes, queues and settings.

-- name: find_shapes
-- Known shapes; usually all of them are known.
SELECT digest, id FROM shapes WHERE digest = ANY ($1::text[]);

-- name: shapes_after
-- The shapes that a cache lacks.
SELECT id, digest, body FROM shapes WHERE id > $1 ORDER BY id;

-- name: queues
-- All of them; there are few.
SELECT name, weight, paused, max_running, max_per_worker, preempts, limit_id, isolation,
    timeout_ms
FROM queues ORDER BY name;

-- name: put_queue
-- New or changed.
INSERT INTO queues (
    name, weight, paused, max_running, max_per_worker, preempts, limit_id, isolation, timeout_ms
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight, paused = excluded.paused,
    max_running = excluded.max_running, max_per_worker = excluded.max_per_worker,
    preempts = excluded.preempts, limit_id = excluded.limit_id,
    isolation = excluded.isolation, timeout_ms = excluded.timeout_ms;

-- name: meta
-- All settings; there are few.
SELECT name, value FROM meta ORDER BY name;

-- name: set_meta
-- New or changed.
INSERT INTO meta (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: advance_meta
-- The row's lock makes another server wait, which then finds it advanced.
INSERT INTO meta (name, value) VALUES ($1, $3)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value = $2
RETURNING value;

-- name: gaps
-- Where ids have jumped; there are few.
SELECT first, at, last_job, last_workflow, last_event, timeline_before, timeline, lost
FROM gaps ORDER BY first;

-- name: put_gap
-- A new gap, or more that is known about it.
INSERT INTO gaps (first, at, last_job, last_workflow, last_event, timeline_before, timeline, lost)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (first) DO UPDATE SET timeline_before = excluded.timeline_before,
    timeline = excluded.timeline, lost = excluded.lost;
