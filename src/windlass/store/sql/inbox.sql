-- Submissions of users' own transactions: functions/submit_request.sql writes them on
-- PostgreSQL, client/transactions/sqlite.py on SQLite.

-- name: waiting_inbox
-- In the order of submission: a job may name earlier ones.
SELECT id, at, jobs, submitted_by, namespaces, body FROM inbox WHERE id > $1 ORDER BY id LIMIT $2;

-- name: oldest_inbox
-- For how long rows have waited: ids ascend in the order of submission.
SELECT at FROM inbox WHERE id > 0 ORDER BY id LIMIT 1;

-- name: insert_inbox
-- The columns of InboxRow without its id.
INSERT INTO inbox (id, at, jobs, submitted_by, namespaces, body)
VALUES (nextval('inbox_ids'), $1, $2, $3, $4, $5) RETURNING id;

-- name: take_inbox
-- Removed rows become jobs in the same transaction.
DELETE FROM inbox WHERE id = ANY ($1::text::bigint[]) RETURNING id;

-- name: job_alias
-- Read for jobs that do not exist.
SELECT became FROM job_aliases WHERE job = $1;

-- name: trim_aliases
-- The oldest first.
DELETE FROM job_aliases WHERE job IN (
    SELECT job FROM job_aliases WHERE at < $1 ORDER BY at, job LIMIT $2
);

-- name: all_inbox
-- For snapshots.
SELECT id, at, jobs, submitted_by, namespaces, body FROM inbox ORDER BY id;

-- name: all_job_aliases
-- For snapshots.
SELECT job, became, at FROM job_aliases ORDER BY job;
