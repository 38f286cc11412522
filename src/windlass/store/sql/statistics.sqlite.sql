-- What attempts took; deadlines: the statements that only SQLite runs.

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

-- name: statistics_of
-- `?` is a JSON array of kinds, ascending, so rows come in their order.
SELECT
    s.namespace, s.queue, s.kind, s.measure, s.values_seen, s.weight, s.total, s.low, s.high,
    s.updated_at, s.buckets
FROM json_each(?) AS wanted
CROSS JOIN statistics AS s
    ON s.namespace = wanted.value ->> 0 AND s.queue = wanted.value ->> 1 AND s.kind = wanted.value ->> 2
ORDER BY 1, 2, 3, 4;

-- name: forget_statistics
-- Few rows, read as a whole once in a while.
DELETE FROM statistics WHERE updated_at < ?1 OR (namespace, queue, kind, measure) IN (
    SELECT namespace, queue, kind, measure FROM statistics
    ORDER BY updated_at DESC, namespace, queue, kind, measure LIMIT -1 OFFSET ?2
) RETURNING 1;

-- name: add_deadlines
-- Only jobs that have one stand here.
INSERT OR IGNORE INTO deadlines (at, job) VALUES (?, ?);

-- name: drop_deadlines
-- It has been dealt with.
DELETE FROM deadlines WHERE at = ? AND job = ?;
