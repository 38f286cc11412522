-- Statements about what attempts took, and until when jobs may wait.

-- name: look_until
-- The last of the next few events, and no further than what is old enough: a number may
-- become visible late, but not that late.
SELECT coalesce(max(seq), $1::bigint) FROM (
    SELECT seq, at FROM events WHERE seq > $1 ORDER BY seq LIMIT $3
) AS next WHERE at <= $2

-- name: completed_between
-- An end is written once, so each job stands here once; state 8 is completed.
SELECT j.shape, coalesce(j.finished_at, 0) - coalesce(j.started_at, 0),
       coalesce(u.peak_memory, 0)
FROM events AS e
JOIN jobs AS j ON j.id = e.job
LEFT JOIN usage AS u ON u.job = e.job AND u.attempt = e.attempt
WHERE e.seq > $1 AND e.seq <= $2 AND e."to" = {state.completed} AND e.kind = {event.job}
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
-- Few shapes are asked for at once.
SELECT shape, measure, values_seen, total, low, high, buckets FROM statistics
WHERE shape = ANY ($1::text::bigint[]) ORDER BY shape, measure

-- name: put_statistics
-- A row is read, added to and written by one loop.
INSERT INTO statistics (shape, measure, values_seen, total, low, high, buckets)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (shape, measure) DO UPDATE SET
    values_seen = excluded.values_seen, total = excluded.total, low = excluded.low, high = excluded.high,
    buckets = excluded.buckets

-- name: all_statistics
-- For snapshots.
SELECT shape, measure, values_seen, total, low, high, buckets FROM statistics ORDER BY shape, measure

-- name: put_usage
-- The newest attempt's counts.
INSERT INTO usage (job, attempt, peak_memory) VALUES ($1, $2, $3)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, peak_memory = excluded.peak_memory

-- name: usage_of
-- What a job has used, for showing it.
SELECT job, attempt, peak_memory FROM usage
WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: all_usage
-- For snapshots.
SELECT job, attempt, peak_memory FROM usage ORDER BY job

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

-- name: all_deadlines
-- For snapshots.
SELECT at, job FROM deadlines ORDER BY at, job

-- name: put_past_metadata
-- Reported again, it counts from its last day.
INSERT INTO past_metadata (worker, digest, until, dynamic) VALUES ($1, $2, $3, $4)
ON CONFLICT (worker, digest) DO UPDATE SET until = excluded.until, dynamic = excluded.dynamic

-- name: trim_past_metadata
-- Some workers report something else at every heartbeat.
DELETE FROM past_metadata WHERE worker = $1 AND (until < $2 OR digest NOT IN (
    SELECT digest FROM past_metadata WHERE worker = $1 ORDER BY until DESC, digest LIMIT $3
))

-- name: past_metadata
-- Of all workers: each has a few.
SELECT worker, digest, until, dynamic FROM past_metadata WHERE until >= $1
ORDER BY worker, digest

-- name: remove_past_metadata
-- Along with the worker.
DELETE FROM past_metadata WHERE worker = $1
