-- Concurrency limits: the statements that only PostgreSQL runs.

-- name: find_limits
-- Keys that are known, with their maximum: mostly nothing has to change.
SELECT l.namespace, l.key, l.id, l.max FROM unnest($1::text[], $2::text[]) AS u (namespace, key)
JOIN limits l ON l.namespace = u.namespace AND l.key = u.key;

-- name: insert_limits
-- Numbered in the order given, inserted in the order of keys, so that two submits do not
-- block each other.
INSERT INTO limits (id, namespace, key, max, leased)
SELECT n.id, n.namespace, n.key, n.max, 0
FROM (SELECT nextval('limit_ids') AS id, namespace, key, max
      FROM unnest($1::text[], $2::text[], $3::text::bigint[]) AS u (namespace, key, max)
      OFFSET 0) AS n
ORDER BY n.namespace COLLATE "C", n.key COLLATE "C"
ON CONFLICT (namespace, key) DO NOTHING;

-- name: set_limits
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT l.id, u.max FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (id, max)
    JOIN limits l ON l.id = u.id ORDER BY l.id FOR NO KEY UPDATE OF l
)
UPDATE limits l SET max = k.max FROM locked k WHERE l.id = k.id AND l.max <> k.max;

-- name: lock_limits
-- After places, before workflows.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id FOR NO KEY UPDATE;

-- name: read_limits
-- Without locks, for reads.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id;

-- name: lock_free_limits
-- For a claim that holds limits behind these already: waiting here could end in a deadlock.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- name: parked_limits
-- A loose index scan: one descent for each limit.
WITH RECURSIVE found AS (
    (SELECT limit_id FROM parked ORDER BY limit_id LIMIT 1)
    UNION ALL
    SELECT n.limit_id FROM found f CROSS JOIN LATERAL (
        SELECT limit_id FROM parked WHERE limit_id > f.limit_id ORDER BY limit_id LIMIT 1
    ) AS n
)
SELECT limit_id FROM found;

-- name: bump_limits
-- `lock_limits` holds these rows.
UPDATE limits l SET leased = l.leased + u.delta
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (id, delta) WHERE l.id = u.id;
