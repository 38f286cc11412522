-- Workflows and cascades.

-- name: pull_cascade
-- Several servers work on different intents.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: advance_cascade
-- `pull_cascade` holds the row.
UPDATE cascades SET cursor = $2 WHERE id = $1;

-- name: remove_cascade
-- `pull_cascade` holds the row.
DELETE FROM cascades WHERE id = $1;

-- name: cascades_of
-- What is still to happen to the dependents of these jobs, and to all jobs of these workflows.
SELECT id, job, workflow, kind, cursor, reason FROM cascades
WHERE job = ANY ($1::text::bigint[]) OR workflow = ANY ($2::text::bigint[])
ORDER BY id;

-- name: describe_workflow
-- What it was submitted with.
INSERT INTO workflow_about (workflow, base, key, reason, body) VALUES ($1, $2, $3, $4, $5);

-- name: workflow_about
-- By primary key.
SELECT workflow, base, key, reason, body FROM workflow_about
WHERE workflow = ANY ($1::text::bigint[]) ORDER BY workflow;

-- name: set_workflow_reason
-- Why it was canceled.
UPDATE workflow_about SET reason = $2 WHERE workflow = $1;

-- name: claim_workflow_key
-- The key is new, or names the one that is to be replaced; else it stays as it is.
INSERT INTO workflow_keys AS k (namespace, key, workflow) VALUES ($1, $2, $3)
ON CONFLICT (namespace, key) DO UPDATE SET workflow = excluded.workflow WHERE k.workflow = $4;

-- name: workflow_key
-- A statement of its own: only a new snapshot shows who won.
SELECT workflow FROM workflow_keys WHERE namespace = $1 AND key = $2;

-- name: newest_workflows
-- A bounded walk back from an id.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id < $1 ORDER BY id DESC LIMIT $2;
