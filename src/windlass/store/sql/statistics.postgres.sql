-- What attempts took; deadlines: the statements that only PostgreSQL runs.

-- name: completed_between
-- An end is written once, so each job stands here once; state 8 is completed.
SELECT j.shape, j.finished_at - j.started_at, coalesce(u.peak_memory, 0), j.spec
FROM events AS e
JOIN jobs AS j ON j.id = e.job
LEFT JOIN usage AS u ON u.job = e.job AND u.attempt = e.attempt
WHERE e.seq > $1 AND e.seq <= $2 AND e."to" = {state.completed} AND e.kind = {event.job}
  AND j.started_at IS NOT NULL AND j.finished_at IS NOT NULL
ORDER BY e.seq;

-- name: statistics_of
-- Few kinds are asked for at once, as a JSON array of arrays.
SELECT
    s.namespace, s.queue, s.kind, s.measure, s.values_seen, s.weight, s.total, s.low, s.high,
    s.updated_at, s.buckets
FROM json_array_elements($1::json) AS wanted (kind)
JOIN statistics AS s
    ON s.namespace = wanted.kind ->> 0 AND s.queue = wanted.kind ->> 1 AND s.kind = wanted.kind ->> 2
ORDER BY s.namespace, s.queue, s.kind, s.measure;

-- name: forget_statistics
-- Few rows, read as a whole once in a while.
DELETE FROM statistics WHERE updated_at < $1 OR (namespace, queue, kind, measure) IN (
    SELECT namespace, queue, kind, measure FROM statistics
    ORDER BY updated_at DESC, namespace, queue, kind, measure OFFSET $2
) RETURNING 1;

-- name: add_deadlines
-- Only jobs that have one stand here.
INSERT INTO deadlines (at, job)
SELECT * FROM unnest($1::text::bigint[], $2::text::bigint[]) ON CONFLICT DO NOTHING;

-- name: drop_deadlines
-- They have been dealt with.
DELETE FROM deadlines AS d USING unnest($1::text::bigint[], $2::text::bigint[]) AS u (at, job)
WHERE d.at = u.at AND d.job = u.job;
