-- Pools, their workers and costs.
-- `carray(?)` is an array of integers bound as one parameter; CROSS JOIN keeps it the outer loop,
-- so that rows come in the array's order. An INSERT that ends in VALUES (…) is also executed for
-- many rows at once (bulk.py).

-- name: insert_pool
-- The columns of PoolRow; a name is taken once.
INSERT INTO pools (
    id, name, state, failures, next_at, started_at, message, learned, body, created_at,
    created_by, updated_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: pool
-- By primary key.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
    created_by, updated_at
FROM pools WHERE id = ?;

-- name: pool_by_name
-- By the unique key.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
    created_by, updated_at
FROM pools WHERE name = ?;

-- name: update_pool
-- By primary key.
UPDATE pools SET state = ?2, failures = ?3, next_at = ?4, started_at = ?5, message = ?6,
    learned = ?7, body = ?8, updated_at = ?9
WHERE id = ?1;

-- name: remove_pool
-- By primary key.
DELETE FROM pools WHERE id = ?;

-- name: remove_pool_workers
-- When their pool is removed, which is rare.
DELETE FROM pool_workers WHERE pool = ?;

-- name: pools_by_name
-- Pools are few.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
    created_by, updated_at
FROM pools ORDER BY name;


-- pool_workers ----------------------------------------------------------------------

-- name: insert_pool_worker
-- The columns of PoolWorkerRow.
INSERT INTO pool_workers (
    id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
    tries, spot, token, machine, reason
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_pool_worker
-- By primary key.
UPDATE pool_workers SET state = ?2, worker = ?3, last_lease = ?4, changed_at = ?5,
    idle_since = ?6, charged_until = ?7, tries = ?8, machine = ?9, reason = ?10
WHERE id = ?1;

-- name: pool_worker
-- By primary key.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
    tries, spot, token, machine, reason
FROM pool_workers WHERE id = ?;

-- name: living_pool_workers
-- The partial index holds those alone.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
    tries, spot, token, machine, reason
FROM pool_workers WHERE state < {pool_worker.gone} AND (?1 IS NULL OR pool = ?1) ORDER BY id;

-- name: trim_gone_pool_workers
-- The oldest first, by their partial index.
DELETE FROM pool_workers WHERE id IN (
    SELECT id FROM pool_workers WHERE state = {pool_worker.gone} AND changed_at < ?1
    ORDER BY changed_at, id LIMIT ?2
);

-- name: charge_pool
-- Sums, one row for each pool, month, namespace and queue.
INSERT INTO pool_costs (pool, month, namespace, queue, ms, micros) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET ms = ms + excluded.ms, micros = micros + excluded.micros;

-- name: pool_costs_of_month
-- A span of the primary key.
SELECT pool, month, namespace, queue, ms, micros
FROM pool_costs WHERE month = ?1 AND (?2 IS NULL OR pool = ?2) ORDER BY pool, namespace, queue;

-- name: ready_load
-- A loose index scan over the shapes, and of each no more than a bounded span is counted.
WITH RECURSIVE found (shape) AS (
    SELECT min(shape) FROM ready
    UNION ALL
    SELECT (SELECT min(shape) FROM ready WHERE shape > found.shape)
    FROM found WHERE found.shape IS NOT NULL
)
SELECT shape, (SELECT count(*) FROM (
    SELECT 1 FROM ready AS r WHERE r.shape = found.shape LIMIT ?1
)) FROM found WHERE shape IS NOT NULL;

-- name: ended_spells
-- The events since a look some seconds ago; 3 to 6 are the states of a job that a worker holds.
SELECT
    e.worker, j.shape,
    coalesce(a.started_at, a.assigned_at, o.started_at, o.assigned_at) AS since,
    e.at
FROM events AS e
CROSS JOIN jobs AS j ON j.id = e.job
LEFT JOIN outcomes AS o ON o.job = e.job AND o.attempt = e.attempt
LEFT JOIN attempts AS a ON a.job = e.job AND a.number = e.attempt
WHERE e.seq > ?1 AND e.kind = {event.job} AND e.from_state BETWEEN {state.assigned} AND {state.timed_out} AND e.to_state NOT BETWEEN {state.assigned} AND {state.timed_out}
    AND e.worker IN carray(?2) AND coalesce(a.assigned_at, o.started_at, o.assigned_at) IS NOT NULL
ORDER BY 1, 2, 3, 4;

-- name: forget_position
-- By primary key.
DELETE FROM meta WHERE name = ?;

-- name: nth_ready
-- A bounded span of the primary key.
SELECT rank, job FROM ready WHERE shape = ?1 AND (rank, job) > (?2, ?3)
ORDER BY rank, job LIMIT 1 OFFSET ?4 - 1;

-- name: rest_of_ready
-- Only asked for where fewer are left than the span before had.
SELECT count(*) FROM ready WHERE shape = ?1 AND (rank, job) > (?2, ?3);

-- name: leased_load
-- What is leased fits the fleet, however long the queue is.
SELECT l.worker, j.shape, coalesce(l.started_at, l.assigned_at) AS since, l.job
FROM leases AS l CROSS JOIN jobs AS j ON j.id = l.job ORDER BY 1, 2, 3, 4;
