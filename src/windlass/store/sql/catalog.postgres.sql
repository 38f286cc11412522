-- Shapes, queues and settings: the statements that only PostgreSQL runs.

-- name: insert_shapes
-- Numbered in the order given, inserted in the order of digests, so that two submits do
-- not block each other.
INSERT INTO shapes (id, digest, body)
SELECT n.id, n.digest, n.body
FROM (SELECT nextval('shape_ids')::integer AS id, digest, body
      FROM unnest($1::text[], $2::bytea[]) AS u (digest, body) OFFSET 0) AS n
ORDER BY n.digest COLLATE "C"
ON CONFLICT (digest) DO NOTHING;

-- name: lock_timeline
-- Engines that find a new timeline take turns; each holds the lock until it commits.
SELECT pg_advisory_xact_lock(1464421956, 5);

-- name: timelines
-- The timeline seen last, and the present one.
SELECT (SELECT timeline FROM timelines), current_timeline();

-- name: note_timeline
-- The one row is new or changed.
WITH gone AS (DELETE FROM timelines) INSERT INTO timelines VALUES ($1);

-- name: jump_ids
-- See functions/.
SELECT jump_ids($1), (SELECT coalesce(max(id), 0) FROM jobs),
       (SELECT coalesce(max(id), 0) FROM workflows), (SELECT coalesce(max(seq), 0) FROM events);
