-- What users submitted in transactions of their own: what SQLite says otherwise.

-- name: insert_aliases
-- The columns of JobAlias.
INSERT INTO job_aliases (job, became, at) VALUES (?, ?, ?);
