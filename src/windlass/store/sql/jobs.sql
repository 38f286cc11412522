-- Rows of `jobs`, their attempts, dependents and keys.

-- name: attempts
-- Ascending by number within each job.
SELECT job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
       started_at, finished_at
FROM attempts WHERE job = ANY ($1::text::bigint[]) ORDER BY job, number;
