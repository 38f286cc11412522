-- Submissions of users' own transactions: the statements that only SQLite runs.

-- name: insert_aliases
-- The columns of JobAlias.
INSERT INTO job_aliases (job, became, at) VALUES (?, ?, ?);
