-- Whole steps of many jobs at once: the statements that only PostgreSQL runs.

-- name: append_moves
-- See functions/; returns the number of the last event, as `append_events`.
SELECT append_moves($1, $2::text::bigint[], $3::text::integer[], $4, nullif($5::bigint, 0),
                    nullif($6::bigint, 0), $7::text::smallint[], $8, $9, $10);

-- name: enter
-- Jobs that are ready at once go into both tables by one pass over the columns.
WITH entered AS (
    INSERT INTO jobs (id, spec, shape, workflow, flags, rank, base, adjustment, age_from,
                      created_at, limit_id, timeout_ms, idle_ms, supersedes)
    SELECT u.id, u.spec, coalesce(u.shape, $15), coalesce(u.workflow, $16),
           coalesce(u.flags, $17), coalesce(u.rank, $18), coalesce(u.base, $19),
           coalesce(u.adjustment, $20), coalesce(u.age_from, $21), coalesce(u.created_at, $22),
           coalesce(u.limit_id, $23), coalesce(u.timeout_ms, $24),
           coalesce(u.idle_ms, $25), coalesce(u.supersedes, $26)
    FROM unnest($1::text::bigint[], $2::bytea[], $3::text::integer[], $4::text::bigint[],
                $5::text::integer[], $6::text::bigint[], $7::text::integer[], $8::text::integer[],
                $9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[],
                $13::text::bigint[], $14::text::bigint[])
         AS u (id, spec, shape, workflow, flags, rank, base, adjustment, age_from, created_at,
               limit_id, timeout_ms, idle_ms, supersedes)
    RETURNING shape, rank, id, workflow, limit_id
)
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id)
SELECT shape, rank, id, 0, workflow, limit_id FROM entered;

-- name: lock_untied_jobs
-- Locks all, in order; returns only those in a workflow, which are few.
WITH locked AS MATERIALIZED (
    SELECT id, workflow FROM jobs WHERE id = ANY ($1::text::bigint[])
    ORDER BY id FOR NO KEY UPDATE
)
SELECT id FROM locked WHERE workflow IS NOT NULL;

-- name: complete
-- `lock_untied_jobs` holds the rows of `jobs`, and this statement began after it: what it
-- sees of leases and dependents stays true. State 4 is running, 8 completed. The sum keeps the
-- planner from the index on the worker, by which each job would meet all of its worker's.
WITH gone AS MATERIALIZED (
    DELETE FROM leases l
    USING unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                 $4::text::bigint[], $5::text::integer[], $6::bytea[])
          AS u (job, attempt, worker, incarnation, exit_code, result)
    WHERE l.job = u.job AND l.attempt = coalesce(u.attempt, $7)
      AND l.worker + 0 = coalesce(u.worker, $8) AND l.incarnation = coalesce(u.incarnation, $9)
      AND l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL
      AND NOT EXISTS (SELECT FROM dependents d WHERE d.job = u.job AND d.chunk = 0)
      AND NOT EXISTS (SELECT FROM waits w WHERE w.job = u.job)
    RETURNING l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at,
              coalesce(u.exit_code, $10) AS exit_code, coalesce(u.result, $11) AS result
), ended AS (
    UPDATE jobs j SET state = {state.completed}, attempt = g.attempt, worker = g.worker,
        incarnation = g.incarnation, assigned_at = g.assigned_at, started_at = g.started_at,
        finished_at = $12, failure = {failure.none}, exit_code = g.exit_code, message = NULL,
        reason = NULL, result = g.result
    FROM gone g WHERE j.id = g.job
)
SELECT job FROM gone;

-- name: complete_tied
-- `hold_jobs` holds the rows of `jobs`, and this statement began after it. All of these
-- attempts or none: $10 is how many they are.
WITH held AS MATERIALIZED (
    SELECT l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at,
           coalesce(u.exit_code, $11) AS exit_code, coalesce(u.result, $12) AS result
    FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                $4::text::bigint[], $5::text::integer[], $6::bytea[])
         AS u (job, attempt, worker, incarnation, exit_code, result)
    JOIN leases l ON l.job = u.job AND l.attempt = coalesce(u.attempt, $7)
      AND l.worker + 0 = coalesce(u.worker, $8) AND l.incarnation = coalesce(u.incarnation, $9)
    WHERE l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL
      AND NOT EXISTS (SELECT FROM waits w WHERE w.job = u.job)
), gone AS MATERIALIZED (
    DELETE FROM leases l USING held h
    WHERE l.job = h.job AND (SELECT count(*) FROM held) = $10::bigint
    RETURNING h.*
)
UPDATE jobs j SET state = {state.completed}, attempt = g.attempt, worker = g.worker,
    incarnation = g.incarnation, assigned_at = g.assigned_at, started_at = g.started_at,
    finished_at = $13, failure = {failure.none}, exit_code = g.exit_code, message = NULL,
    reason = NULL, result = g.result
FROM gone g WHERE j.id = g.job
RETURNING j.id, j.shape, j.workflow;

-- name: end_blocked
-- Ends waiting jobs, except those that keep a wait (2) while they run. It first locks,
-- in order. `end_queued`, which starts later, handles jobs that move to `ready` meanwhile.
WITH locked AS MATERIALIZED (
    SELECT job FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE
), gone AS (
    DELETE FROM waits w USING locked l WHERE w.job = l.job
        AND w.manual <> {manual.kept_while_running} RETURNING w.job
), ended AS (
    UPDATE jobs j SET state = $2::smallint, worker = NULL, incarnation = NULL,
        assigned_at = NULL, started_at = NULL, finished_at = $3::bigint, failure = {failure.none}, exit_code = NULL,
        message = NULL, reason = $4::text, result = NULL
    FROM gone g WHERE j.id = g.job
    RETURNING j.id, j.shape, j.workflow, j.limit_id, j.flags, j.attempt
), listed AS (
    INSERT INTO bad_ends (job, state) SELECT id, $2::smallint FROM ended WHERE $2::smallint > {state.completed}
    ON CONFLICT (job) DO UPDATE SET state = excluded.state
)
SELECT id, {state.blocked}, shape, workflow, limit_id, flags, attempt
FROM ended;

-- name: end_queued
-- The same for ready jobs; waits for a running claim, and skips the jobs that it took.
WITH locked AS MATERIALIZED (
    SELECT r.shape, r.rank, r.job
    FROM jobs j JOIN ready r ON r.shape = j.shape AND r.rank = j.rank AND r.job = j.id
    WHERE j.id = ANY ($1::text::bigint[]) ORDER BY r.job FOR UPDATE OF r
), gone AS (
    DELETE FROM ready r USING locked l
    WHERE r.shape = l.shape AND r.rank = l.rank AND r.job = l.job RETURNING r.job
), ended AS (
    UPDATE jobs j SET state = $2::smallint, worker = NULL, incarnation = NULL,
        assigned_at = NULL, started_at = NULL, finished_at = $3::bigint, failure = {failure.none}, exit_code = NULL,
        message = NULL, reason = $4::text, result = NULL
    FROM gone g WHERE j.id = g.job
    RETURNING j.id, j.shape, j.workflow, j.limit_id, j.flags, j.attempt
), listed AS (
    INSERT INTO bad_ends (job, state) SELECT id, $2::smallint FROM ended WHERE $2::smallint > {state.completed}
    ON CONFLICT (job) DO UPDATE SET state = excluded.state
)
SELECT id, {state.queued}, shape, workflow, limit_id, flags, attempt
FROM ended;
