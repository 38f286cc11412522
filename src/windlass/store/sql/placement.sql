-- Concurrency limits, loads, rates, reservations and shares.

-- name: running_by_shape
-- Scans all leases, at most once a second.
SELECT j.shape, count(*) FROM leases AS l CROSS JOIN jobs AS j WHERE j.id = l.job
GROUP BY j.shape ORDER BY j.shape;

-- name: reservations
-- There are few.
SELECT worker, job, shape, since FROM reservations ORDER BY worker;

-- name: reserve
-- One worker per job, one job per worker.
INSERT INTO reservations (worker, job, shape, since) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING RETURNING job;

-- name: namespace_weights
-- There are few.
SELECT namespace, weight FROM namespace_weights ORDER BY namespace;

-- name: set_namespace_weight
-- New or changed.
INSERT INTO namespace_weights (namespace, weight) VALUES ($1, $2)
ON CONFLICT (namespace) DO UPDATE SET weight = excluded.weight;

-- name: rate
-- By primary key.
SELECT namespace, key, keep, starts FROM rates WHERE namespace = $1 AND key = $2;
