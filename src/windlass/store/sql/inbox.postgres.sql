-- Submissions of users' own transactions: the statements that only PostgreSQL runs.

-- name: lock_inbox
-- One server at a time. The next begins its statement when the first has committed, and sees
-- the jobs that others refer to.
SELECT pg_advisory_xact_lock(1464421956, 3);

-- name: insert_aliases
-- The columns of JobAlias.
INSERT INTO job_aliases (job, became, at)
SELECT job, became, at
FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[]) AS u (job, became, at);
