-- The places where open jobs wait: waits, due, parked, ready.

-- name: next_due
-- When to look again.
SELECT coalesce((SELECT at FROM due ORDER BY at, job LIMIT 1), 0);

-- name: count_ready
-- Limits are small numbers, and so are these counts.
SELECT count(*) FROM ready WHERE limit_id = $1 AND shape = $2;

-- name: worst_ready
-- Sorts at most as many as the limit allows. Skips rows that a claim holds.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready WHERE limit_id = $1 AND shape = $2
ORDER BY rank DESC, job DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
