-- Whole tables, for comparing and verifying.

-- name: filled
-- Which of the statements that read whole tables would find a row: most tables are often empty.
SELECT statement FROM (VALUES
    ('all_jobs', EXISTS (SELECT FROM jobs)),
    ('all_waits', EXISTS (SELECT FROM waits)),
    ('all_due', EXISTS (SELECT FROM due)),
    ('all_parked', EXISTS (SELECT FROM parked)),
    ('all_ready', EXISTS (SELECT FROM ready)),
    ('all_leases', EXISTS (SELECT FROM leases)),
    ('all_attempts', EXISTS (SELECT FROM attempts)),
    ('all_dependents', EXISTS (SELECT FROM dependents)),
    ('all_workers', EXISTS (SELECT FROM workers)),
    ('all_limits', EXISTS (SELECT FROM limits)),
    ('all_keys', EXISTS (SELECT FROM keys)),
    ('all_workflows', EXISTS (SELECT FROM workflows)),
    ('all_cascades', EXISTS (SELECT FROM cascades)),
    ('shapes_after', EXISTS (SELECT FROM shapes)),
    ('queues', EXISTS (SELECT FROM queues)),
    ('meta', EXISTS (SELECT FROM meta)),
    ('counters', EXISTS (SELECT FROM counters)),
    ('all_tokens', EXISTS (SELECT FROM tokens)),
    ('all_codes', EXISTS (SELECT FROM codes)),
    ('all_logs', EXISTS (SELECT FROM logs)),
    ('all_artifacts', EXISTS (SELECT FROM artifacts)),
    ('names', EXISTS (SELECT FROM names)),
    ('uploads', EXISTS (SELECT FROM uploads)),
    ('all_progress', EXISTS (SELECT FROM progress)),
    ('all_dynamic', EXISTS (SELECT FROM dynamic)),
    ('all_baseline', EXISTS (SELECT FROM baseline)),
    ('all_templates', EXISTS (SELECT FROM templates)),
    ('all_schedules', EXISTS (SELECT FROM schedules)),
    ('all_schedule_runs', EXISTS (SELECT FROM schedule_runs)),
    ('all_reactions', EXISTS (SELECT FROM reactions)),
    ('all_workflow_about', EXISTS (SELECT FROM workflow_about)),
    ('all_workflow_keys', EXISTS (SELECT FROM workflow_keys)),
    ('all_rates', EXISTS (SELECT FROM rates)),
    ('reservations', EXISTS (SELECT FROM reservations)),
    ('namespace_weights', EXISTS (SELECT FROM namespace_weights)),
    ('all_statistics', EXISTS (SELECT FROM statistics)),
    ('all_series', EXISTS (SELECT FROM series)),
    ('all_usage', EXISTS (SELECT FROM usage)),
    ('all_steps', EXISTS (SELECT FROM steps)),
    ('all_signals', EXISTS (SELECT FROM signals)),
    ('all_deadlines', EXISTS (SELECT FROM deadlines)),
    ('past_metadata', EXISTS (SELECT FROM past_metadata)),
    ('past_workers', EXISTS (SELECT FROM past_workers)),
    ('all_pools_by_id', EXISTS (SELECT FROM pools)),
    ('all_pool_workers', EXISTS (SELECT FROM pool_workers)),
    ('all_pool_costs', EXISTS (SELECT FROM pool_costs)),
    ('all_inbox', EXISTS (SELECT FROM inbox)),
    ('all_job_aliases', EXISTS (SELECT FROM job_aliases)),
    ('gaps', EXISTS (SELECT FROM gaps))
) AS tables (statement, is_filled) WHERE is_filled

-- name: all_workflow_about
-- For comparing and verifying.
SELECT workflow, base, key, reason, body FROM workflow_about ORDER BY workflow

-- name: all_workflow_keys
-- For comparing and verifying.
SELECT namespace, key, workflow FROM workflow_keys
ORDER BY namespace COLLATE "C", key COLLATE "C"

-- name: all_jobs
-- For comparing and verifying.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded,
       assigned_at, started_at, finished_at,
       coalesce(failure, 0), exit_code, message, reason, result, spec
FROM jobs ORDER BY id

-- name: all_waits
-- For comparing and verifying.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow,
       limit_id, excluded
FROM waits ORDER BY job

-- name: all_due
-- For comparing and verifying.
SELECT at, job, state, shape, rank, attempt, workflow, limit_id,
       excluded
FROM due ORDER BY at, job

-- name: all_parked
-- For comparing and verifying.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM parked ORDER BY limit_id, shape, rank, job

-- name: all_ready
-- For comparing and verifying.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready ORDER BY shape, rank, job

-- name: all_leases
-- For comparing and verifying.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, timeout_ms, idle_ms, limit_id, reason,
       queue_limit, coalesce(suspicion, 0), indices
FROM leases ORDER BY job

-- name: all_attempts
-- For comparing and verifying.
SELECT job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
       started_at, finished_at
FROM attempts ORDER BY job, number

-- name: all_dependents
-- For comparing and verifying.
SELECT job, chunk, edges FROM dependents ORDER BY job, chunk

-- name: all_limits
-- For comparing and verifying.
SELECT id, namespace, key, max, leased FROM limits ORDER BY id

-- name: past_workers
-- For tests and checks.
SELECT id, name FROM past_workers ORDER BY id

-- name: all_keys
-- For comparing and verifying.
SELECT namespace, key, job, digest, spans FROM keys ORDER BY namespace, key

-- name: all_workflows
-- For comparing and verifying.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows ORDER BY id

-- name: all_cascades
-- For comparing and verifying.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id

-- name: all_codes
-- For comparing and verifying.
SELECT digest, created_at, expires_at, used_at, takeover, worker, token FROM codes ORDER BY digest

-- name: all_logs
-- For comparing and verifying.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs ORDER BY job, attempt

-- name: all_artifacts
-- For comparing and verifying.
SELECT job, attempt, name, sha256, size, content_type FROM artifacts
ORDER BY job, attempt, name

-- name: all_progress
-- For comparing and verifying.
SELECT job, attempt, value, at FROM progress ORDER BY job

-- name: all_dynamic
-- For comparing and verifying.
SELECT job, attempt, body FROM dynamic ORDER BY job

-- name: all_baseline
-- For comparing and verifying.
SELECT kind, id, body FROM baseline ORDER BY kind, id

-- name: all_rates
-- For comparing and verifying.
SELECT namespace, key, keep, starts FROM rates ORDER BY namespace, key

-- name: all_pools_by_id
-- As snapshots show them.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools ORDER BY id

-- name: all_pool_workers
-- By primary key.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
       tries, spot, token, machine, reason
FROM pool_workers ORDER BY id

-- name: all_pool_costs
-- In the order of the rows.
SELECT pool, month, namespace, queue, ms, micros
FROM pool_costs ORDER BY pool, month, namespace, queue

-- name: all_templates
-- By primary key.
SELECT namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates ORDER BY namespace, name, version

-- name: all_schedules
-- By primary key.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
       last_slot, body, created_at, created_by, updated_at
FROM schedules ORDER BY id

-- name: all_schedule_runs
-- By primary key.
SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
FROM schedule_runs ORDER BY id

-- name: all_reactions
-- By primary key.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
       outcome, result, message
FROM reactions ORDER BY id

-- name: all_statistics
-- For snapshots.
SELECT namespace, queue, kind, measure, values_seen, weight, total, low, high, updated_at, buckets
FROM statistics ORDER BY namespace, queue, kind, measure

-- name: all_series
-- For snapshots.
SELECT kind, step, at, namespace, name, body FROM series ORDER BY kind, step, at, namespace, name

-- name: all_usage
-- For snapshots.
SELECT job, attempt, peak_memory FROM usage ORDER BY job

-- name: all_steps
-- For snapshots.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps ORDER BY job, key

-- name: all_signals
-- For snapshots.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals ORDER BY id

-- name: all_deadlines
-- For snapshots.
SELECT at, job FROM deadlines ORDER BY at, job
