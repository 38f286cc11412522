-- What attempts took, deadlines, figures over time: the statements that only PostgreSQL runs.

-- name: look_until
-- The end of the row that holds the last of the next few events, and no further than what is old enough:
-- a number may become visible late, but not that late.
SELECT coalesce(max(seq), $1::bigint) FROM (
    SELECT seq, at, sum(size) OVER (ORDER BY seq) - size AS before FROM (
        SELECT seq, at, coalesce(cardinality(jobs), 1) * CASE WHEN via IS NULL THEN 1 ELSE 2 END AS size
        FROM events WHERE seq > $1 ORDER BY seq LIMIT $3
    ) AS next
) AS counted WHERE at <= $2 AND before < $3;

-- name: completed_between
-- An end is written once, so each job occurs once; state 8 is completed.
SELECT j.shape, j.finished_at - j.started_at, coalesce(u.peak_memory, 0), j.spec
FROM each_event AS e
JOIN jobs AS j ON j.id = e.job
LEFT JOIN usage AS u ON u.job = e.job AND u.attempt = e.attempt
WHERE e.row_seq > $1 AND e.row_seq <= $2 + {events.in_row} AND e.seq > $1 AND e.seq <= $2 AND e."to" = {state.completed} AND e.kind = {event.job}
  AND j.started_at IS NOT NULL AND j.finished_at IS NOT NULL
ORDER BY e.seq;

-- name: statistics_of
-- Few kinds are read at once, as a JSON array of arrays.
SELECT
    s.namespace, s.queue, s.kind, s.measure, s.values_seen, s.weight, s.total, s.low, s.high,
    s.updated_at, s.buckets
FROM json_array_elements($1::json) AS wanted (kind)
JOIN statistics AS s
    ON s.namespace = wanted.kind ->> 0 AND s.queue = wanted.kind ->> 1 AND s.kind = wanted.kind ->> 2
ORDER BY s.namespace, s.queue, s.kind, s.measure;

-- name: forget_statistics
-- Few rows, all read from time to time.
DELETE FROM statistics WHERE updated_at < $1 OR (namespace, queue, kind, measure) IN (
    SELECT namespace, queue, kind, measure FROM statistics
    ORDER BY updated_at DESC, namespace, queue, kind, measure OFFSET $2
) RETURNING 1;

-- name: add_deadlines
-- Only jobs that have one are here.
INSERT INTO deadlines (at, job)
SELECT * FROM unnest($1::text::bigint[], $2::text::bigint[]) ON CONFLICT DO NOTHING;

-- name: drop_deadlines
-- They have been dealt with.
DELETE FROM deadlines AS d USING unnest($1::text::bigint[], $2::text::bigint[]) AS u (at, job)
WHERE d.at = u.at AND d.job = u.job;

-- name: moves_between
-- Reads along the primary key; jobs and attempts by theirs. The shape of each deleted job is looked up
-- by itself: a planner without figures would walk through all of them for each event.
SELECT e.seq, e.at, e."from", e."to", e.attempt, coalesce(j.shape, g.name::integer),
       coalesce(j.age_from, e.at),
       coalesce(a.started_at, CASE WHEN j.attempt = e.attempt THEN j.started_at END),
       coalesce(a.failure, CASE WHEN j.attempt = e.attempt THEN j.failure END, 0)
FROM each_event AS e
LEFT JOIN jobs AS j ON j.id = e.job
LEFT JOIN attempts AS a ON a.job = e.job AND a.number = e.attempt
LEFT JOIN LATERAL (
    SELECT name FROM series WHERE kind = {series.gone} AND step = 0 AND at = e.job LIMIT 1
) AS g ON true
WHERE e.row_seq > $1 AND e.row_seq <= $2 + {events.in_row} AND e.seq > $1 AND e.seq <= $2 AND e.kind = {event.job}
ORDER BY e.seq;

-- name: moved_between
-- The same walk, added up.
SELECT coalesce(j.shape, g.name::integer) AS shape, e."from", e."to", count(*)
FROM each_event AS e
LEFT JOIN jobs AS j ON j.id = e.job
LEFT JOIN LATERAL (
    SELECT name FROM series WHERE kind = {series.gone} AND step = 0 AND at = e.job LIMIT 1
) AS g ON true
WHERE e.row_seq > $1 AND e.row_seq <= $2 + {events.in_row} AND e.seq > $1 AND e.seq <= $2 AND e.kind = {event.job}
  AND (j.shape IS NOT NULL OR g.name IS NOT NULL)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: held_since
-- Reads events that begin or end a lease, along the primary key.
SELECT coalesce(worker, 0), sum(CASE WHEN "to" = {state.assigned} THEN 1 ELSE -1 END)::bigint
FROM each_event
WHERE row_seq > $1 AND row_seq <= $2 + {events.in_row} AND seq > $1 AND seq <= $2 AND kind = {event.job}
    AND ("to" IN ({state.assigned}, {state.running}, {state.canceling}, {state.timed_out})) <> ("from" IN ({state.assigned}, {state.running}, {state.canceling}, {state.timed_out}))
GROUP BY 1 ORDER BY 1;

-- name: completed_on
-- Reads events of completions along the primary key; the jobs by theirs.
SELECT coalesce(e.worker, 0), j.shape, max(e.at), count(*)
FROM each_event AS e JOIN jobs AS j ON j.id = e.job
WHERE e.row_seq > $1 AND e.seq > $1 AND e.at >= $2 AND e.kind = {event.job} AND e."to" = {state.completed}
GROUP BY e.worker, j.shape, e.at / 60000 ORDER BY 1, 2, e.at / 60000;

-- name: series_between
-- A range of the primary key for each kind.
SELECT s.kind, s.step, s.at, s.namespace, s.name, s.body
FROM unnest($1::text::integer[]) WITH ORDINALITY AS wanted (kind, place)
JOIN series AS s ON s.kind = wanted.kind AND s.step = $2 AND s.at >= $3 AND s.at < $4
ORDER BY wanted.place, s.at, s.namespace, s.name;

-- name: put_series
-- A row is read, added to and written by one loop.
INSERT INTO series (kind, step, at, namespace, name, body)
SELECT * FROM unnest($1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text[], $5::text[], $6::text[])
ON CONFLICT (kind, step, at, namespace, name) DO UPDATE SET body = excluded.body;

-- name: pool_workers_by_state
-- Few workers are living, compared with those that are gone.
SELECT p.name, w.state, count(*)
FROM pool_workers AS w JOIN pools AS p ON p.id = w.pool
WHERE w.state < {pool_worker.gone} GROUP BY p.name, w.state ORDER BY p.name, w.state;
