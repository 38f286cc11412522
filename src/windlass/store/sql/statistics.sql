-- What attempts took, deadlines, figures over time.

-- name: move_statistics_on
-- The row's lock makes another server's round wait, which then finds it advanced.
INSERT INTO meta (name, value) VALUES ('statistics_seq', $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value = $1
RETURNING value;

-- name: statistics_position
-- Events up to here are accounted for.
SELECT value FROM meta WHERE name = 'statistics_seq';

-- name: put_statistics
-- A row is read, added to and written by one loop.
INSERT INTO statistics (
    namespace, queue, kind, measure, values_seen, weight, total, low, high, updated_at, buckets
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (namespace, queue, kind, measure) DO UPDATE SET
    values_seen = excluded.values_seen, weight = excluded.weight, total = excluded.total,
    low = excluded.low, high = excluded.high, updated_at = excluded.updated_at, buckets = excluded.buckets;

-- name: put_usage
-- The newest attempt's counts.
INSERT INTO usage (job, attempt, peak_memory) VALUES ($1, $2, $3)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, peak_memory = excluded.peak_memory;

-- name: usage_of
-- What a job has used, to show it.
SELECT job, attempt, peak_memory FROM usage
WHERE job = ANY ($1::text::bigint[]) ORDER BY job;

-- name: deadlines_passed
-- The primary key is the order of time.
SELECT at, job FROM deadlines WHERE at <= $1 ORDER BY at, job LIMIT $2;

-- name: first_event_at
-- The first row along the primary key.
SELECT at FROM events WHERE seq > $1 ORDER BY seq LIMIT 1;

-- name: move_series_on
-- The row's lock makes another server's round wait, which then finds it advanced.
INSERT INTO meta (name, value) VALUES ('series_seq', $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value = $1
RETURNING value;

-- name: series_position
-- Events up to here are counted.
SELECT value FROM meta WHERE name = 'series_seq';

-- name: last_series
-- The end of a range of the primary key.
SELECT kind, step, at, namespace, name, body FROM series
WHERE kind = $1 AND step = $2 AND at < $3 ORDER BY at DESC, namespace DESC, name DESC LIMIT 1;

-- name: trim_series
-- The start of a range of the primary key.
DELETE FROM series WHERE (kind, step, at, namespace, name) IN (
    SELECT kind, step, at, namespace, name FROM series
    WHERE kind = $1 AND step = $2 AND at < $3 ORDER BY at, namespace, name LIMIT $4
) RETURNING 1;

-- name: workers_by_status
-- One row per worker, once a minute.
SELECT status, count(*) FROM workers GROUP BY status ORDER BY status;
