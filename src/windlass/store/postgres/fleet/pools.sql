-- Pools, their workers and costs.

-- name: insert_pool
-- A name is taken once; two servers may try at the same moment. No number is wasted.
INSERT INTO pools (id, name, state, failures, next_at, started_at, message, learned, body,
                   created_at, created_by, updated_at)
SELECT nextval('pool_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
WHERE NOT EXISTS (SELECT FROM pools WHERE name = $1)
ON CONFLICT DO NOTHING RETURNING id

-- name: lock_pool
-- Pools are the first rows to be locked.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools WHERE id = $1 FOR NO KEY UPDATE

-- name: lock_pool_name
-- The same by name.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools WHERE name = $1 FOR NO KEY UPDATE

-- name: update_pool
-- `lock_pool` holds the row.
UPDATE pools SET state = $2, failures = $3, next_at = $4, started_at = $5, message = $6,
       learned = $7, body = $8, updated_at = $9
WHERE id = $1

-- name: remove_pool
-- `lock_pool` holds the row; pools are removed rarely.
WITH gone AS (DELETE FROM pool_workers WHERE pool = $1)
DELETE FROM pools WHERE id = $1

-- name: pools_by_name
-- Pools are few.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools ORDER BY name

-- name: insert_pool_worker
-- Under the lock of its pool.
INSERT INTO pool_workers (id, pool, state, worker, last_lease, requested_at, changed_at, idle_since,
                          charged_until, tries, spot, token, machine, reason)
VALUES (nextval('pool_worker_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
RETURNING id

-- name: update_pool_workers
-- Under the lock of their pool, all in one go: the locks of its workers are held meanwhile.
UPDATE pool_workers AS p SET state = u.state, worker = u.worker, last_lease = u.last_lease,
       changed_at = u.changed_at, idle_since = u.idle_since, charged_until = u.charged_until,
       tries = u.tries, machine = u.machine, reason = u.reason
FROM unnest($1::text::bigint[], $2::text::smallint[], $3::text::bigint[], $4::text::bigint[],
            $5::text::bigint[], $6::text::bigint[], $7::text::bigint[], $8::text::integer[],
            $9::text[], $10::text[])
     AS u (id, state, worker, last_lease, changed_at, idle_since, charged_until, tries, machine, reason)
WHERE p.id = u.id

-- name: pool_worker
-- By primary key.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
       tries, spot, token, machine, reason
FROM pool_workers WHERE id = $1

-- name: living_pool_workers
-- The partial index holds those alone.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
       tries, spot, token, machine, reason
FROM pool_workers WHERE state < {pool_worker.gone} AND ($1::bigint IS NULL OR pool = $1) ORDER BY id

-- name: trim_gone_pool_workers
-- The oldest first, by their partial index.
DELETE FROM pool_workers WHERE id IN (
    SELECT id FROM pool_workers WHERE state = {pool_worker.gone} AND changed_at < $1
    ORDER BY changed_at, id LIMIT $2
)

-- name: charge_pool
-- Sums, one row for each pool, month, namespace and queue.
INSERT INTO pool_costs AS c (pool, month, namespace, queue, ms, micros)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (month, pool, namespace, queue)
DO UPDATE SET ms = c.ms + excluded.ms, micros = c.micros + excluded.micros

-- name: pool_costs_of_month
-- A span of the primary key.
SELECT pool, month, namespace, queue, ms, micros
FROM pool_costs WHERE month = $1 AND ($2::text IS NULL OR pool = $2)
ORDER BY pool, namespace, queue

-- name: ready_load
-- A loose index scan over the shapes, and of each no more than a bounded span is counted.
WITH RECURSIVE found AS (
    (SELECT shape FROM ready ORDER BY shape LIMIT 1)
    UNION ALL
    SELECT n.shape FROM found f CROSS JOIN LATERAL (
        SELECT shape FROM ready WHERE shape > f.shape ORDER BY shape LIMIT 1
    ) AS n
)
SELECT f.shape, c.count FROM found f CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT FROM ready r WHERE r.shape = f.shape LIMIT $1) AS span
) AS c

-- name: ended_spells
-- The events since a look some seconds ago; 3 to 6 are the states of a job that a worker holds.
-- What has ended stands with the job, what was tried again with the attempts.
SELECT e.worker, j.shape,
       coalesce(t.started_at, t.assigned_at) AS since, e.at
FROM events e
JOIN jobs j ON j.id = e.job
CROSS JOIN LATERAL (
    SELECT a.started_at, a.assigned_at FROM attempts a
    WHERE a.job = e.job AND a.number = e.attempt
    UNION ALL
    SELECT j.started_at, j.assigned_at
    WHERE j.attempt = e.attempt AND j.state > {state.retrying}
    LIMIT 1
) AS t
WHERE e.seq > $1 AND e.kind = {event.job} AND e."from" BETWEEN {state.assigned} AND {state.timed_out} AND e."to" NOT BETWEEN {state.assigned} AND {state.timed_out}
    AND e.worker = ANY ($2::text::bigint[]) AND coalesce(t.started_at, t.assigned_at) IS NOT NULL
ORDER BY 1, 2, 3, 4

-- name: forget_position
-- By primary key.
DELETE FROM meta WHERE name = $1

-- name: nth_ready
-- A bounded span of the primary key.
SELECT rank, job FROM ready WHERE shape = $1 AND (rank, job) > ($2, $3)
ORDER BY rank, job LIMIT 1 OFFSET $4::bigint - 1

-- name: rest_of_ready
-- Only asked for where fewer are left than the span before had.
SELECT count(*) FROM ready WHERE shape = $1 AND (rank, job) > ($2, $3)

-- name: leased_load
-- What is leased fits the fleet, however long the queue is.
SELECT l.worker, j.shape, coalesce(l.started_at, l.assigned_at) AS since, l.job
FROM leases l JOIN jobs j ON j.id = l.job ORDER BY 1, 2, 3, 4
