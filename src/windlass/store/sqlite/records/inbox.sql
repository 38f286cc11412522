-- What users submitted in transactions of their own. They write to `inbox` and `sequences` only,
-- see client/transactions/sqlite.py.

-- name: waiting_inbox
-- In the order in which they were submitted: a job may name earlier ones.
SELECT id, at, jobs, submitted_by, namespaces, body FROM inbox WHERE id > ? ORDER BY id LIMIT ?;

-- name: oldest_inbox
-- For how long rows wait: ids ascend in the order of submission.
SELECT at FROM inbox WHERE id > 0 ORDER BY id LIMIT 1;

-- name: insert_inbox
-- The columns of InboxRow.
INSERT INTO inbox (id, at, jobs, submitted_by, namespaces, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: take_inbox
-- What is gone is among the jobs after the same transaction.
DELETE FROM inbox WHERE id IN carray(?) RETURNING id;

-- name: job_alias
-- Looked up for jobs that are not there.
SELECT became FROM job_aliases WHERE job = ?;

-- name: insert_aliases
-- The columns of JobAlias.
INSERT INTO job_aliases (job, became, at) VALUES (?, ?, ?);

-- name: trim_aliases
-- The oldest first.
DELETE FROM job_aliases WHERE job IN (
    SELECT job FROM job_aliases WHERE at < ? ORDER BY at, job LIMIT ?
);

-- name: all_inbox
-- For snapshots.
SELECT id, at, jobs, submitted_by, namespaces, body FROM inbox ORDER BY id;

-- name: all_job_aliases
-- For snapshots.
SELECT job, became, at FROM job_aliases ORDER BY job;
