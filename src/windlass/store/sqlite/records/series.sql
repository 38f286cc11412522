-- Figures over time.

-- name: moves_between
-- A walk along the primary key; the jobs, their ends and attempts by theirs.
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
-- A walk along the primary key, of events that begin or end a lease.
SELECT worker, sum(CASE WHEN to_state = {state.assigned} THEN 1 ELSE -1 END)
FROM events
WHERE seq > ?1 AND seq <= ?2 AND kind = {event.job}
    AND (to_state IN ({state.assigned}, {state.running}, {state.canceling}, {state.timed_out})) <> (from_state IN ({state.assigned}, {state.running}, {state.canceling}, {state.timed_out}))
GROUP BY 1 ORDER BY 1;

-- name: first_event_at
-- The first step of a walk along the primary key.
SELECT at FROM events WHERE seq > ? ORDER BY seq LIMIT 1;

-- name: completed_on
-- A walk along the primary key, of jobs that completed; the jobs by theirs.
SELECT e.worker, j.shape, max(e.at), count(*)
FROM events AS e
CROSS JOIN jobs AS j ON j.id = e.job
WHERE e.seq > ?1 AND e.at >= ?2 AND e.kind = {event.job} AND e.to_state = {state.completed}
GROUP BY e.worker, j.shape, e.at / 60000 ORDER BY e.worker, j.shape, e.at / 60000;

-- name: move_series_on
-- Nobody has moved it meanwhile, or this was the first time.
INSERT INTO meta (name, value) VALUES ('series_seq', ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value = ?1
RETURNING value;

-- name: series_position
-- Events up to here are counted.
SELECT value FROM meta WHERE name = 'series_seq';

-- name: series_between
-- A stretch of the primary key.
SELECT kind, step, at, namespace, name, body FROM series
WHERE kind = ?1 AND step = ?2 AND at >= ?3 AND at < ?4 ORDER BY at, namespace, name;

-- name: last_series
-- The end of a stretch of the primary key.
SELECT kind, step, at, namespace, name, body FROM series
WHERE kind = ?1 AND step = ?2 AND at < ?3 ORDER BY at DESC, namespace DESC, name DESC LIMIT 1;

-- name: put_series
-- A row is read, added to and written by one loop.
INSERT OR REPLACE INTO series (kind, step, at, namespace, name, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: trim_series
-- The start of a stretch of the primary key.
DELETE FROM series WHERE (kind, step, at, namespace, name) IN (
    SELECT kind, step, at, namespace, name FROM series
    WHERE kind = ?1 AND step = ?2 AND at < ?3 ORDER BY at, namespace, name LIMIT ?4
) RETURNING 1;

-- name: workers_by_status
-- One row a worker, once a minute.
SELECT status, count(*) FROM workers GROUP BY status ORDER BY status;

-- name: pool_workers_by_state
-- By the partial index of living ones.
SELECT p.name, w.state, count(*)
FROM pool_workers AS w INDEXED BY pool_workers_living
CROSS JOIN pools AS p ON p.id = w.pool
WHERE w.state < {pool_worker.gone} GROUP BY p.name, w.state ORDER BY p.name, w.state;
