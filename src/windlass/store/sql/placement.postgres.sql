-- Concurrency limits, loads, rates, reservations and shares: the statements that only PostgreSQL runs.

-- name: loads
-- By the index on the worker; the caller has locked the workers, so nothing is added.
SELECT l.worker, j.shape, count(*) FROM leases l
CROSS JOIN LATERAL (SELECT shape FROM jobs WHERE jobs.id = l.job OFFSET 0) AS j
WHERE l.worker = ANY ($1::text::bigint[]) GROUP BY l.worker, j.shape ORDER BY l.worker, j.shape;

-- name: held_indices
-- By the index on the worker; the caller has locked the workers, so nothing is added.
SELECT worker, job, indices FROM leases
WHERE worker = ANY ($1::text::bigint[]) AND indices IS NOT NULL ORDER BY worker, job;

-- name: hold_indices
-- The caller has made these rows.
UPDATE leases l SET indices = u.indices
FROM unnest($1::text::bigint[], $2::text[]) AS u (job, indices) WHERE l.job = u.job;

-- name: preemptible
-- Scans all leases when jobs of a preempting queue wait. 4 is running, 16 the flag.
SELECT l.job, l.worker, j.shape, j.rank, (l.reason IS NOT NULL)::integer
FROM leases l JOIN jobs j ON j.id = l.job
WHERE l.state = {state.running} AND j.flags & {flag.preemptible} <> 0 ORDER BY l.lease DESC;

-- name: unbound_leases
-- Scans all leases when a limit is set, and then every few seconds. Locks in order.
SELECT l.job FROM leases l
WHERE l.queue_limit IS NULL
  AND (SELECT j.shape FROM jobs j WHERE j.id = l.job) = ANY ($1::text::integer[])
ORDER BY l.job FOR NO KEY UPDATE OF l;

-- name: bind_leases
-- The caller has made or locked these rows.
UPDATE leases l SET queue_limit = $2
FROM unnest($1::text::bigint[]) AS u (job) WHERE l.job = u.job;

-- name: add_rates
-- The first job under a key; in the order of keys, so that two claims do not block each other.
INSERT INTO rates (namespace, key, keep, starts)
SELECT u.namespace, u.key, 0, '[]' FROM unnest($1::text[], $2::text[]) AS u (namespace, key)
ORDER BY u.namespace COLLATE "C", u.key COLLATE "C"
ON CONFLICT (namespace, key) DO NOTHING;

-- name: lock_rates
-- After limits, in the order of keys.
SELECT r.namespace, r.key, r.keep, r.starts
FROM rates r JOIN unnest($1::text[], $2::text[]) AS u (namespace, key)
    ON r.namespace = u.namespace AND r.key = u.key
ORDER BY r.namespace, r.key FOR NO KEY UPDATE OF r;

-- name: lock_free_rates
-- For a claim that already holds later rates: waiting here could end in a deadlock.
SELECT r.namespace, r.key, r.keep, r.starts
FROM rates r JOIN unnest($1::text[], $2::text[]) AS u (namespace, key)
    ON r.namespace = u.namespace AND r.key = u.key
ORDER BY r.namespace, r.key FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: known_rates
-- Nearly always all of them.
SELECT r.namespace, r.key
FROM rates r JOIN unnest($1::text[], $2::text[]) AS u (namespace, key)
    ON r.namespace = u.namespace AND r.key = u.key;

-- name: put_rates
-- `lock_rates` holds these rows.
UPDATE rates r SET keep = u.keep, starts = u.starts
FROM unnest($1::text[], $2::text[], $3::text::integer[], $4::text[])
     AS u (namespace, key, keep, starts)
WHERE r.namespace = u.namespace AND r.key = u.key;

-- name: release
-- The locks come in order.
DELETE FROM reservations r USING (
    SELECT worker FROM reservations WHERE worker = ANY ($1::text::bigint[])
    ORDER BY worker FOR UPDATE
) AS k WHERE r.worker = k.worker;

-- name: find_limits
-- Known keys with their maximums: usually nothing changes.
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
-- First locks, in order.
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
-- For a claim that already holds later limits: waiting here could end in a deadlock.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- name: parked_limits
-- A loose index scan: one descent per limit.
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
