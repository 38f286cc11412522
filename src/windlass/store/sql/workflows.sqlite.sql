-- Workflows and cascades: the statements that only SQLite runs.

-- name: insert_workflows
-- The columns of WorkflowRow; the counts are a JSON list by state code.
INSERT INTO workflows (
    id, namespace, name, state, run, flags, created_at, finished_at, counts
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_workflows
-- In the order asked for.
SELECT
    w.id, w.namespace, w.name, w.state, w.run, w.flags, w.created_at, w.finished_at, w.counts
FROM carray(?) AS wanted CROSS JOIN workflows AS w ON w.id = wanted.value;

-- name: set_counts
-- Once for each workflow of a batch.
UPDATE workflows SET counts = ?2 WHERE id = ?1;

-- name: set_workflow_states
-- A reopened workflow has a new run and no end.
UPDATE workflows SET state = ?2, run = ?3, finished_at = ?4 WHERE id = ?1;

-- name: add_cascades
-- The columns of Cascade.
INSERT INTO cascades (id, job, workflow, kind, cursor, reason) VALUES (?, ?, ?, ?, ?, ?);

-- name: jobs_of_workflow
-- Along the partial index from an id on.
SELECT
    j.id, j.shape, j.workflow, o.state, ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, j.handed_back, o.worker, o.incarnation,
    j.excluded
FROM jobs AS j INDEXED BY jobs_workflow LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.workflow = ?1 AND j.id > ?2 ORDER BY j.id LIMIT ?3;

-- name: last_job_of_workflow
-- The end of the partial index, which has the ids of a workflow's jobs in order.
SELECT ifnull(max(id), 0) FROM jobs INDEXED BY jobs_workflow WHERE workflow = ?1;

-- name: open_jobs_of_workflow
-- Along the partial index from an id on.
SELECT j.id FROM jobs AS j INDEXED BY jobs_workflow
WHERE j.workflow = ?1 AND j.id > ?2
    AND NOT EXISTS (SELECT 1 FROM outcomes AS o WHERE o.job = j.id)
ORDER BY j.id LIMIT ?3;

-- name: jobs_outside
-- By primary key.
SELECT j.id FROM carray(?2) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value
WHERE j.workflow IS NOT ?1;

-- name: unfinished_workflows
-- By the partial index: 1 to 3 are the states that are no ends.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows INDEXED BY workflows_unfinished WHERE state < {workflow.completed} AND id > ?1 ORDER BY id LIMIT ?2;

-- name: recount_workflow
-- Each job by its end or its place (blocked if it stands nowhere), and whether it is forgiven.
SELECT
    coalesce(
        o.state, l.state, d.state,
        CASE WHEN EXISTS (
            SELECT 1 FROM ready AS r WHERE (r.shape, r.rank, r.job) = (j.shape, j.rank, j.id)
        ) OR EXISTS (
            SELECT 1 FROM parked AS p
            WHERE (p.limit_id, p.shape, p.rank, p.job) = (j.limit_id, j.shape, j.rank, j.id)
        ) THEN {state.queued} ELSE {state.blocked} END
    ) AS standing,
    ifnull(
        o.state > {state.completed} AND o.state <> {state.skipped}
        AND o.flags & {flag.allow_failure}, 0
    ) AS forgiven,
    count(*)
FROM jobs AS j INDEXED BY jobs_workflow
LEFT JOIN outcomes AS o ON o.job = j.id
LEFT JOIN leases AS l ON l.job = j.id
LEFT JOIN due AS d ON d.job = j.id
WHERE j.workflow = ?1 AND j.superseded_by IS NULL
GROUP BY standing, forgiven;
