-- Whole tables, for comparing and verifying.

-- name: all_workflow_about
-- For comparing and verifying.
SELECT workflow, base, key, reason, body FROM workflow_about ORDER BY workflow;

-- name: all_waits
-- For comparing and verifying.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow,
       limit_id, excluded
FROM waits ORDER BY job;

-- name: all_due
-- For comparing and verifying.
SELECT at, job, state, shape, rank, attempt, workflow, limit_id,
       excluded
FROM due ORDER BY at, job;

-- name: all_parked
-- For comparing and verifying.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM parked ORDER BY limit_id, shape, rank, job;

-- name: all_ready
-- For comparing and verifying.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready ORDER BY shape, rank, job;

-- name: all_attempts
-- For comparing and verifying.
SELECT job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
       started_at, finished_at
FROM attempts ORDER BY job, number;

-- name: all_dependents
-- For comparing and verifying.
SELECT job, edges FROM dependents ORDER BY job, chunk;

-- name: all_limits
-- For comparing and verifying.
SELECT id, namespace, key, max, leased FROM limits ORDER BY id;

-- name: all_past_workers
-- For tests and checks.
SELECT id, name FROM past_workers ORDER BY id;

-- name: all_keys
-- For comparing and verifying.
SELECT namespace, key, job, digest, spans FROM keys ORDER BY namespace, key;

-- name: all_workflows
-- For comparing and verifying.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows ORDER BY id;

-- name: all_cascades
-- For comparing and verifying.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id;

-- name: all_codes
-- For comparing and verifying.
SELECT digest, created_at, expires_at, used_at, takeover, worker, token FROM codes ORDER BY digest;

-- name: all_logs
-- For comparing and verifying.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs ORDER BY job, attempt;

-- name: all_artifacts
-- For comparing and verifying.
SELECT job, attempt, name, sha256, size, content_type FROM artifacts
ORDER BY job, attempt, name;

-- name: all_progress
-- For comparing and verifying.
SELECT job, attempt, value, at FROM progress ORDER BY job;

-- name: all_dynamic
-- For comparing and verifying.
SELECT job, attempt, body FROM dynamic ORDER BY job;

-- name: all_baseline
-- For comparing and verifying.
SELECT kind, id, body FROM baseline ORDER BY kind, id;

-- name: all_rates
-- For comparing and verifying.
SELECT namespace, key, keep, starts FROM rates ORDER BY namespace, key;

-- name: all_pools
-- As snapshots show them.
SELECT id, name, state, failures, next_at, started_at, message, learned, body, created_at,
       created_by, updated_at
FROM pools ORDER BY id;

-- name: all_pool_workers
-- By primary key.
SELECT id, pool, state, worker, last_lease, requested_at, changed_at, idle_since, charged_until,
       tries, spot, token, machine, reason
FROM pool_workers ORDER BY id;

-- name: all_pool_costs
-- In the order of the rows.
SELECT pool, month, namespace, queue, ms, micros
FROM pool_costs ORDER BY pool, month, namespace, queue;

-- name: all_templates
-- By primary key.
SELECT namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates ORDER BY namespace, name, version;

-- name: all_schedules
-- By primary key.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
       last_slot, body, created_at, created_by, updated_at
FROM schedules ORDER BY id;

-- name: all_schedule_runs
-- By primary key.
SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
FROM schedule_runs ORDER BY id;

-- name: all_reactions
-- By primary key.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
       outcome, result, message
FROM reactions ORDER BY id;

-- name: all_statistics
-- For snapshots.
SELECT namespace, queue, kind, measure, values_seen, weight, total, low, high, updated_at, buckets
FROM statistics ORDER BY namespace, queue, kind, measure;

-- name: all_series
-- For snapshots.
SELECT kind, step, at, namespace, name, body FROM series ORDER BY kind, step, at, namespace, name;

-- name: all_usage
-- For snapshots.
SELECT job, attempt, peak_memory FROM usage ORDER BY job;

-- name: all_steps
-- For snapshots.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps ORDER BY job, key;

-- name: all_signals
-- For snapshots.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals ORDER BY id;

-- name: all_deadlines
-- For snapshots.
SELECT at, job FROM deadlines ORDER BY at, job;

-- name: all_leases
-- For comparing and verifying.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, timeout_ms, idle_ms, limit_id, reason,
       queue_limit, coalesce(suspicion, 0), indices
FROM leases ORDER BY job;
