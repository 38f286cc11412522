-- Removing old jobs and events.

-- name: baseline
-- By primary key.
SELECT kind, id, body FROM baseline WHERE kind = $1 AND id = ANY ($2::text::bigint[]) ORDER BY id;

-- name: drop_baseline
-- By primary key.
DELETE FROM baseline WHERE kind = $1 AND id = ANY ($2::text::bigint[]);
