-- Leases, the current attempts: the statements that only PostgreSQL runs.

-- name: grant
-- One statement turns ready jobs into leases: `peek` holds the rows of `ready`, `jobs` is
-- only read, and the lease's number comes back beside its job. Numbers are drawn first and
-- once, for a join may take its rows in any order, and several times.
WITH numbered AS MATERIALIZED (
    SELECT *, nextval('lease_numbers') AS lease
    FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                $4::text::bigint[], $5::text::integer[], $6::text::bigint[],
                $7::text::bigint[])
         AS v (job, attempt, worker, incarnation, shape, rank, limit_id)
), given AS MATERIALIZED (
    SELECT u.job, coalesce(u.attempt, $10) AS attempt, u.lease,
           coalesce(u.worker, $11) AS worker, coalesce(u.incarnation, $12) AS incarnation,
           coalesce(u.shape, $13) AS shape, coalesce(u.rank, $14) AS rank,
           coalesce(u.limit_id, $15) AS limit_id, j.timeout_ms, j.idle_ms, j.spec,
           j.handed_back
    FROM numbered u JOIN jobs j ON j.id = u.job
), taken AS (
    DELETE FROM ready r USING given g
    WHERE r.shape = g.shape AND r.rank = g.rank AND r.job = g.job
), leased AS (
    INSERT INTO leases (job, attempt, lease, worker, incarnation, state, assigned_at,
                        started_at, deadline_at, timeout_ms, idle_ms, limit_id)
    SELECT job, attempt, lease, worker, incarnation, $8::smallint, $9::bigint,
           CASE WHEN $8 = {state.running} THEN $9 END,
           CASE WHEN $8 = {state.running} THEN $9 + least(timeout_ms, idle_ms) + $16::bigint
                ELSE $9 + $16 END,
           timeout_ms, idle_ms, limit_id
    FROM given
)
SELECT job, attempt, lease, timeout_ms, idle_ms, spec, handed_back
FROM given ORDER BY lease;

-- name: lock_leases
-- If a lease is about to end, the jobs are locked already, in the same order.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, timeout_ms, idle_ms, limit_id, reason,
       queue_limit, coalesce(suspicion, 0), indices
FROM leases WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE;

-- name: read_leases
-- Without locks, for reads.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, timeout_ms, idle_ms, limit_id, reason,
       queue_limit, coalesce(suspicion, 0), indices
FROM leases WHERE job = ANY ($1::text::bigint[]) ORDER BY job;

-- name: leases_of_workers
-- The leases of a worker, in the order in which they were granted.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, timeout_ms, idle_ms, limit_id, reason,
       queue_limit, coalesce(suspicion, 0), indices
FROM leases WHERE worker = ANY ($1::text::bigint[]) ORDER BY lease;

-- name: newer_leases
-- Numbers rise: none of those that ended before is passed. One lookup for each worker, whatever the
-- statistics say.
SELECT l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
       l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
       l.queue_limit, coalesce(l.suspicion, 0), l.indices
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (worker, lease)
CROSS JOIN LATERAL (
    SELECT * FROM leases WHERE leases.worker = u.worker AND leases.lease > u.lease OFFSET 0
) AS l ORDER BY l.lease;

-- name: marked_leases
-- Runs in every sync and is nearly always empty: a partial index answers it.
SELECT worker, incarnation, job, attempt, state, reason, coalesce(suspicion, 0)
FROM leases WHERE worker = ANY ($1::text::bigint[])
  AND (reason IS NOT NULL OR suspicion IS NOT NULL) ORDER BY lease;

-- name: count_leases
-- Leases that a worker already holds count against its slots.
SELECT worker, count(*) FROM leases WHERE worker = ANY ($1::text::bigint[]) GROUP BY worker;

-- name: start_leases
-- First locks, in order.
WITH locked AS MATERIALIZED (
    SELECT l.job, u.started_at, u.deadline_at
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[])
         AS u (job, started_at, deadline_at)
    JOIN leases l ON l.job = u.job ORDER BY l.job FOR NO KEY UPDATE OF l
)
UPDATE leases l SET state = {state.running}, started_at = k.started_at, deadline_at = k.deadline_at
FROM locked k WHERE l.job = k.job AND l.state = {state.assigned};

-- name: mark_leases
-- First locks, in order.
WITH locked AS MATERIALIZED (
    SELECT job FROM leases WHERE job = ANY ($1::text::bigint[])
    ORDER BY job FOR NO KEY UPDATE
)
UPDATE leases l SET state = $2, reason = $3 FROM locked k WHERE l.job = k.job;

-- name: suspect_leases
-- Right after the grant, so nobody else sees these rows yet.
UPDATE leases SET suspicion = nullif($2::smallint, 0) WHERE job = ANY ($1::text::bigint[]);

-- name: allow_leases
-- The duration of the media is known now. It first locks, in order.
WITH locked AS MATERIALIZED (
    SELECT l.job, u.timeout_ms, u.deadline_at
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[])
         AS u (job, timeout_ms, deadline_at)
    JOIN leases l ON l.job = u.job ORDER BY l.job FOR NO KEY UPDATE OF l
)
UPDATE leases l SET timeout_ms = k.timeout_ms, deadline_at = k.deadline_at
FROM locked k WHERE l.job = k.job;

-- name: touch_leases
-- First locks, in order.
WITH locked AS MATERIALIZED (
    SELECT l.job, u.activity_at, u.deadline_at
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[])
         AS u (job, activity_at, deadline_at)
    JOIN leases l ON l.job = u.job ORDER BY l.job FOR NO KEY UPDATE OF l
)
UPDATE leases l SET activity_at = k.activity_at, deadline_at = k.deadline_at
FROM locked k WHERE l.job = k.job;

-- name: drop_leases
-- `lock_leases` holds these rows; even without it, they are visited in ascending order.
DELETE FROM leases l USING unnest($1::text::bigint[]) AS u (job) WHERE l.job = u.job;
