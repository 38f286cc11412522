-- What users submitted in transactions of their own: the statements that only SQLite runs.

-- name: insert_aliases
-- The columns of JobAlias.
INSERT INTO job_aliases (job, became, at) VALUES (?, ?, ?);
