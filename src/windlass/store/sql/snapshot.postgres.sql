-- Whole tables, for comparing and verifying: the statements that only PostgreSQL runs.

-- name: filled
-- The statements on whole tables that would find a row: most tables are often empty.
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
    ('all_names', EXISTS (SELECT FROM names)),
    ('all_uploads', EXISTS (SELECT FROM uploads)),
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
    ('all_past_workers', EXISTS (SELECT FROM past_workers)),
    ('all_pools', EXISTS (SELECT FROM pools)),
    ('all_pool_workers', EXISTS (SELECT FROM pool_workers)),
    ('all_pool_costs', EXISTS (SELECT FROM pool_costs)),
    ('all_inbox', EXISTS (SELECT FROM inbox)),
    ('all_job_aliases', EXISTS (SELECT FROM job_aliases)),
    ('gaps', EXISTS (SELECT FROM gaps))
) AS tables (statement, is_filled) WHERE is_filled;

-- name: all_workflow_keys
-- For comparing and verifying.
SELECT namespace, key, workflow FROM workflow_keys
ORDER BY namespace COLLATE "C", key COLLATE "C";

-- name: all_jobs
-- For comparing and verifying.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded,
       assigned_at, started_at, finished_at,
       coalesce(failure, 0), exit_code, message, reason, result, spec
FROM jobs ORDER BY id;
