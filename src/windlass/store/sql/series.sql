-- Figures over time.

-- name: first_event_at
-- The first step of a walk along the primary key.
SELECT at FROM events WHERE seq > $1 ORDER BY seq LIMIT 1;

-- name: move_series_on
-- The row's lock keeps another server's round waiting, which then finds it moved.
INSERT INTO meta (name, value) VALUES ('series_seq', $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value = $1
RETURNING value;

-- name: series_position
-- Events up to here are counted.
SELECT value FROM meta WHERE name = 'series_seq';

-- name: last_series
-- The end of a stretch of the primary key.
SELECT kind, step, at, namespace, name, body FROM series
WHERE kind = $1 AND step = $2 AND at < $3 ORDER BY at DESC, namespace DESC, name DESC LIMIT 1;

-- name: trim_series
-- The start of a stretch of the primary key.
DELETE FROM series WHERE (kind, step, at, namespace, name) IN (
    SELECT kind, step, at, namespace, name FROM series
    WHERE kind = $1 AND step = $2 AND at < $3 ORDER BY at, namespace, name LIMIT $4
) RETURNING 1;

-- name: workers_by_status
-- One row a worker, once a minute.
SELECT status, count(*) FROM workers GROUP BY status ORDER BY status;
