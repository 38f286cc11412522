-- What attempts took, deadlines, figures over time: the statements that only SQLite runs.

-- name: look_until
-- The last of the next few events, and no further than what is old enough: a number may
-- become visible late, but not that late.
SELECT coalesce(max(seq), ?1) FROM (
    SELECT seq, at FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?3
) AS next WHERE at <= ?2;

-- name: completed_between
-- An end is written once, so each job occurs once; state 8 is completed.
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
-- Few rows, all read from time to time.
DELETE FROM statistics WHERE updated_at < ?1 OR (namespace, queue, kind, measure) IN (
    SELECT namespace, queue, kind, measure FROM statistics
    ORDER BY updated_at DESC, namespace, queue, kind, measure LIMIT -1 OFFSET ?2
) RETURNING 1;

-- name: add_deadlines
-- Only jobs that have one are here.
INSERT OR IGNORE INTO deadlines (at, job) VALUES (?, ?);

-- name: drop_deadlines
-- It has been dealt with.
DELETE FROM deadlines WHERE at = ? AND job = ?;

-- name: moves_between
-- Reads along the primary key; jobs, their ends and attempts by theirs.
SELECT
    e.seq, e.at, e.from_state, e.to_state, e.attempt, ifnull(j.shape, CAST(g.name AS INTEGER)),
    ifnull(j.age_from, e.at), ifnull(a.started_at, o.started_at),
    ifnull(a.failure, ifnull(o.failure, 0))
FROM events AS e
LEFT JOIN jobs AS j ON j.id = e.job
LEFT JOIN outcomes AS o ON o.job = e.job AND o.attempt = e.attempt
LEFT JOIN attempts AS a ON a.job = e.job AND a.number = e.attempt
LEFT JOIN series AS g ON g.kind = {series.gone} AND g.step = 0 AND g.at = e.job
WHERE e.seq > ?1 AND e.seq <= ?2 AND e.kind = {event.job}
ORDER BY e.seq;

-- name: moved_between
-- The same walk, added up.
SELECT ifnull(j.shape, CAST(g.name AS INTEGER)) AS shape, e.from_state, e.to_state, count(*)
FROM events AS e
LEFT JOIN jobs AS j ON j.id = e.job
LEFT JOIN series AS g ON g.kind = {series.gone} AND g.step = 0 AND g.at = e.job
WHERE e.seq > ?1 AND e.seq <= ?2 AND e.kind = {event.job} AND ifnull(j.shape, g.name) IS NOT NULL
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: held_since
-- Reads events that begin or end a lease, along the primary key.
SELECT worker, sum(CASE WHEN to_state = {state.assigned} THEN 1 ELSE -1 END)
FROM events
WHERE seq > ?1 AND seq <= ?2 AND kind = {event.job}
    AND (to_state IN ({state.assigned}, {state.running}, {state.canceling}, {state.timed_out})) <> (from_state IN ({state.assigned}, {state.running}, {state.canceling}, {state.timed_out}))
GROUP BY 1 ORDER BY 1;

-- name: completed_on
-- Reads events of completions along the primary key; the jobs by theirs.
SELECT e.worker, j.shape, max(e.at), count(*)
FROM events AS e
CROSS JOIN jobs AS j ON j.id = e.job
WHERE e.seq > ?1 AND e.at >= ?2 AND e.kind = {event.job} AND e.to_state = {state.completed}
GROUP BY e.worker, j.shape, e.at / 60000 ORDER BY e.worker, j.shape, e.at / 60000;

-- name: series_between
-- A range of the primary key for each kind, in its order.
SELECT s.kind, s.step, s.at, s.namespace, s.name, s.body
FROM carray(?1) AS wanted
CROSS JOIN series AS s
    ON s.kind = wanted.value AND s.step = ?2 AND s.at >= ?3 AND s.at < ?4;

-- name: put_series
-- A row is read, added to and written by one loop.
INSERT OR REPLACE INTO series (kind, step, at, namespace, name, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: pool_workers_by_state
-- By the partial index of living ones.
SELECT p.name, w.state, count(*)
FROM pool_workers AS w INDEXED BY pool_workers_living
CROSS JOIN pools AS p ON p.id = w.pool
WHERE w.state < {pool_worker.gone} GROUP BY p.name, w.state ORDER BY p.name, w.state;
