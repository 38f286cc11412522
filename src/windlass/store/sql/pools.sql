-- Pools, their workers and costs.

-- name: insert_pool
-- A name is taken once; two servers may try concurrently. No number is wasted.
INSERT INTO pools (id, name, state, failures, next_at, started_at, message, learned, body,
                   created_at, created_by, updated_at)
SELECT nextval('pool_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
WHERE NOT EXISTS (SELECT 1 FROM pools WHERE name = $1)
ON CONFLICT DO NOTHING RETURNING id;

-- name: lock_pool
-- Pools are the first rows to be locked.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools WHERE id = $1 FOR NO KEY UPDATE;

-- name: lock_pool_name
-- The same by name.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools WHERE name = $1 FOR NO KEY UPDATE;

-- name: update_pool
-- `lock_pool` holds the row.
UPDATE pools SET state = $2, failures = $3, next_at = $4, started_at = $5, message = $6,
       learned = $7, body = $8, updated_at = $9
WHERE id = $1;

-- name: remove_pool
-- `lock_pool` holds the row; pools are removed rarely.
DELETE FROM pools WHERE id = $1;

-- name: remove_pool_workers
-- When their pool is removed, which is rare.
DELETE FROM pool_workers WHERE pool = $1;

-- name: pools_by_name
-- Pools are few.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools ORDER BY name;

-- name: insert_pool_worker
-- Under the lock of its pool.
INSERT INTO pool_workers (id, pool, state, worker, last_lease, requested_at, changed_at, idle_since,
                          charged_until, tries, spot, token, machine, reason)
VALUES (nextval('pool_worker_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
RETURNING id;

-- name: pool_worker
-- By primary key.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
       tries, spot, token, machine, reason
FROM pool_workers WHERE id = $1;

-- name: living_pool_workers
-- By the partial index, which only has these.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
       tries, spot, token, machine, reason
FROM pool_workers WHERE state < {pool_worker.gone} AND ($1::bigint IS NULL OR pool = $1) ORDER BY id;

-- name: trim_gone_pool_workers
-- The oldest first, by their partial index.
DELETE FROM pool_workers WHERE id IN (
    SELECT id FROM pool_workers WHERE state = {pool_worker.gone} AND changed_at < $1
    ORDER BY changed_at, id LIMIT $2
);

-- name: charge_pool
-- Sums, one row for each pool, month, namespace and queue.
INSERT INTO pool_costs AS c (pool, month, namespace, queue, ms, micros)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (month, pool, namespace, queue)
DO UPDATE SET ms = c.ms + excluded.ms, micros = c.micros + excluded.micros;

-- name: pool_costs_of_month
-- A span of the primary key.
SELECT pool, month, namespace, queue, ms, micros
FROM pool_costs WHERE month = $1 AND ($2::text IS NULL OR pool = $2)
ORDER BY pool, namespace, queue;

-- name: forget_position
-- By primary key.
DELETE FROM meta WHERE name = $1;

-- name: nth_ready
-- A bounded range of the primary key.
SELECT rank, job FROM ready WHERE shape = $1 AND (rank, job) > ($2, $3)
ORDER BY rank, job LIMIT 1 OFFSET $4::bigint - 1;

-- name: rest_of_ready
-- Only read if fewer are left than the previous span had.
SELECT count(*) FROM ready WHERE shape = $1 AND (rank, job) > ($2, $3);

-- name: leased_load
-- Leases are bounded by the fleet, however long the queue is.
SELECT l.worker, j.shape, coalesce(l.started_at, l.assigned_at) AS since, l.job
FROM leases AS l CROSS JOIN jobs AS j WHERE j.id = l.job ORDER BY 1, 2, 3, 4;
