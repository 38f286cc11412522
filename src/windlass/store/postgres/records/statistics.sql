-- What attempts took; deadlines.

-- name: look_until
-- The last of the next few events, and no further than what is old enough: a number may
-- become visible late, but not that late.
SELECT coalesce(max(seq), $1::bigint) FROM (
    SELECT seq, at FROM events WHERE seq > $1 ORDER BY seq LIMIT $3
) AS next WHERE at <= $2

-- name: completed_between
-- An end is written once, so each job stands here once; state 8 is completed.
SELECT j.shape, j.finished_at - j.started_at, coalesce(u.peak_memory, 0), j.spec
FROM events AS e
JOIN jobs AS j ON j.id = e.job
LEFT JOIN usage AS u ON u.job = e.job AND u.attempt = e.attempt
WHERE e.seq > $1 AND e.seq <= $2 AND e."to" = {state.completed} AND e.kind = {event.job}
  AND j.started_at IS NOT NULL AND j.finished_at IS NOT NULL
ORDER BY e.seq

-- name: move_statistics_on
-- The row's lock keeps another server's round waiting, which then finds it moved.
INSERT INTO meta (name, value) VALUES ('statistics_seq', $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value = $1
RETURNING value

-- name: statistics_position
-- Events up to here are accounted for.
SELECT value FROM meta WHERE name = 'statistics_seq'

-- name: statistics_of
-- Few kinds are asked for at once.
SELECT
    s.namespace, s.queue, s.kind, s.measure, s.values_seen, s.weight, s.total, s.low, s.high,
    s.updated_at, s.buckets
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (namespace, queue, kind)
JOIN statistics AS s USING (namespace, queue, kind)
ORDER BY s.namespace, s.queue, s.kind, s.measure

-- name: put_statistics
-- A row is read, added to and written by one loop.
INSERT INTO statistics (
    namespace, queue, kind, measure, values_seen, weight, total, low, high, updated_at, buckets
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (namespace, queue, kind, measure) DO UPDATE SET
    values_seen = excluded.values_seen, weight = excluded.weight, total = excluded.total,
    low = excluded.low, high = excluded.high, updated_at = excluded.updated_at, buckets = excluded.buckets

-- name: forget_statistics
-- Few rows, read as a whole once in a while.
DELETE FROM statistics WHERE updated_at < $1 OR (namespace, queue, kind, measure) IN (
    SELECT namespace, queue, kind, measure FROM statistics
    ORDER BY updated_at DESC, namespace, queue, kind, measure OFFSET $2
) RETURNING 1

-- name: put_usage
-- The newest attempt's counts.
INSERT INTO usage (job, attempt, peak_memory) VALUES ($1, $2, $3)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, peak_memory = excluded.peak_memory

-- name: usage_of
-- What a job has used, for showing it.
SELECT job, attempt, peak_memory FROM usage
WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: add_deadlines
-- Only jobs that have one stand here.
INSERT INTO deadlines (at, job)
SELECT * FROM unnest($1::text::bigint[], $2::text::bigint[]) ON CONFLICT DO NOTHING

-- name: deadlines_passed
-- The primary key is the order of time.
SELECT at, job FROM deadlines WHERE at <= $1 ORDER BY at, job LIMIT $2

-- name: drop_deadlines
-- They have been dealt with.
DELETE FROM deadlines AS d USING unnest($1::text::bigint[], $2::text::bigint[]) AS u (at, job)
WHERE d.at = u.at AND d.job = u.job
