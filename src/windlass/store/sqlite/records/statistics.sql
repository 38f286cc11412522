-- What attempts took; deadlines.
-- `carray(?)` is an array of integers bound as one parameter; CROSS JOIN keeps it the outer loop,
-- so that rows come in the array's order. An INSERT that ends in VALUES (…) is also executed for
-- many rows at once (bulk.py).

-- name: look_until
-- The last of the next few events, and no further than what is old enough.
SELECT ifnull(max(seq), ?1) FROM (
    SELECT seq, at FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?3
) WHERE at <= ?2;

-- name: completed_between
-- An end is written once, so each job stands here once; state 8 is completed.
SELECT j.shape, o.finished_at - o.started_at, ifnull(u.peak_memory, 0), j.spec
FROM events AS e
CROSS JOIN jobs AS j ON j.id = e.job
CROSS JOIN outcomes AS o ON o.job = e.job
LEFT JOIN usage AS u ON u.job = e.job AND u.attempt = e.attempt
WHERE e.seq > ?1 AND e.seq <= ?2 AND e.to_state = {state.completed} AND e.kind = {event.job}
    AND o.started_at IS NOT NULL
ORDER BY e.seq;

-- name: move_statistics_on
-- Nobody has moved it meanwhile, or this was the first time.
INSERT INTO meta (name, value) VALUES ('statistics_seq', ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value = ?1
RETURNING value;

-- name: statistics_position
-- Events up to here are accounted for.
SELECT value FROM meta WHERE name = 'statistics_seq';

-- name: statistics_of
-- `?` is a JSON array of kinds, ascending, so rows come in their order.
SELECT
    s.namespace, s.queue, s.kind, s.measure, s.values_seen, s.weight, s.total, s.low, s.high,
    s.updated_at, s.buckets
FROM json_each(?) AS wanted
CROSS JOIN statistics AS s
    ON s.namespace = wanted.value ->> 0 AND s.queue = wanted.value ->> 1 AND s.kind = wanted.value ->> 2
ORDER BY 1, 2, 3, 4;

-- name: put_statistics
-- A row is read, added to and written by one loop.
INSERT OR REPLACE INTO statistics (
    namespace, queue, kind, measure, values_seen, weight, total, low, high, updated_at, buckets
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: forget_statistics
-- Few rows, read as a whole once in a while.
DELETE FROM statistics WHERE updated_at < ?1 OR (namespace, queue, kind, measure) IN (
    SELECT namespace, queue, kind, measure FROM statistics
    ORDER BY updated_at DESC, namespace, queue, kind, measure LIMIT -1 OFFSET ?2
) RETURNING 1;

-- name: put_usage
-- The newest attempt's counts.
INSERT OR REPLACE INTO usage (job, attempt, peak_memory) VALUES (?, ?, ?);

-- name: usage_of
-- What a job has used, for showing it.
SELECT job, attempt, peak_memory FROM usage WHERE job IN carray(?) ORDER BY job;

-- name: add_deadline
-- Only jobs that have one stand here.
INSERT OR IGNORE INTO deadlines (at, job) VALUES (?, ?);

-- name: deadlines_passed
-- The primary key is the order of time.
SELECT at, job FROM deadlines WHERE at <= ? ORDER BY at, job LIMIT ?;

-- name: drop_deadline
-- It has been dealt with.
DELETE FROM deadlines WHERE at = ? AND job = ?;
