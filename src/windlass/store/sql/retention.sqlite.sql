-- Removing old jobs and events: the statements that only SQLite runs.

-- name: remove_workflow_about
-- With the workflow.
DELETE FROM workflow_about WHERE workflow IN carray(?);

-- name: remove_workflow_keys
-- The key may be used anew.
DELETE FROM workflow_keys WHERE workflow IN carray(?);

-- name: job_records
-- The columns of JobRecord, as in `all_jobs`.
SELECT
    j.id, j.shape, j.workflow, o.state, ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, j.handed_back, o.worker, o.incarnation,
    j.excluded,
    o.assigned_at, o.started_at, o.finished_at,
    ifnull(o.failure, 0), o.exit_code, o.message, o.reason, o.result, j.spec
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: jobs_behind
-- Reads a bounded number of rows from an id on: ids rise with time.
SELECT j.id, j.shape, j.workflow, j.created_at, o.state, o.finished_at
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.id > ?1 ORDER BY j.id LIMIT ?2;

-- name: remove_jobs
-- The row itself.
DELETE FROM jobs WHERE id IN carray(?);

-- name: remove_outcomes
-- How the job ended.
DELETE FROM outcomes WHERE job IN carray(?);

-- name: remove_attempts
-- Its earlier attempts.
DELETE FROM attempts WHERE job IN carray(?);

-- name: remove_dependents
-- Who waited for it.
DELETE FROM dependents WHERE job IN carray(?);

-- name: remove_keys
-- Its key may be used anew.
DELETE FROM keys WHERE job IN carray(?);

-- name: remove_logs
-- The segments become orphans.
DELETE FROM logs WHERE job IN carray(?);

-- name: remove_artifacts
-- Blobs that nothing else refers to become orphans.
DELETE FROM artifacts WHERE job IN carray(?);

-- name: remove_progress
-- What it last said.
DELETE FROM progress WHERE job IN carray(?);

-- name: remove_dynamic
-- The resolved arguments.
DELETE FROM dynamic WHERE job IN carray(?);

-- name: remove_workflows
-- Workflows without a job, by the index on the workflow.
DELETE FROM workflows WHERE id IN carray(?) AND NOT EXISTS (
    SELECT 1 FROM jobs AS j WHERE j.workflow = workflows.id
) RETURNING id;

-- name: put_baseline
-- The columns of BaselineRow.
INSERT OR REPLACE INTO baseline (kind, id, body) VALUES (?, ?, ?);

-- name: remove_usage
-- Retention removes it with the jobs.
DELETE FROM usage WHERE job IN carray(?);

-- name: remove_steps
-- Retention removes it with the jobs.
DELETE FROM steps WHERE job IN carray(?);

-- name: trim_events
-- The newest stays, as on the other store.
DELETE FROM events WHERE seq <= ? AND seq < (SELECT max(seq) FROM events);
