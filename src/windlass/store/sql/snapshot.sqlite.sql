-- Whole tables, for comparing and verifying: the statements that only SQLite runs.

-- name: all_workflow_keys
-- By namespace and key.
SELECT namespace, key, workflow FROM workflow_keys ORDER BY namespace, key;

-- name: all_jobs
-- JobRecord: the facts, then the rest.
SELECT
    j.id, j.shape, j.workflow, o.state, ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, j.handed_back, o.worker, o.incarnation,
    j.excluded,
    o.assigned_at, o.started_at, o.finished_at,
    ifnull(o.failure, 0), o.exit_code, o.message, o.reason, o.result, j.spec
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id ORDER BY j.id;
