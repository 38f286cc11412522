-- The event log and the counters beside it: the statements that only SQLite runs.

-- name: read_events
-- Reads along the primary key.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: rare_events_of_job
-- By the partial index, whose condition must be repeated word for word.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events
WHERE job = ? AND
    CASE from_state
        WHEN {state.new} THEN to_state <> {state.queued}
        WHEN {state.queued} THEN to_state <> {state.assigned}
        WHEN {state.assigned} THEN to_state <> {state.running}
        WHEN {state.running} THEN to_state <> {state.completed}
        ELSE 1
    END
ORDER BY seq;

-- name: events_of_job_between
-- The events of one time: those of one transaction or a few.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events WHERE job = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq;

-- name: job_times
-- When the usual transitions of a job happened.
SELECT created_at FROM jobs WHERE id = ?1
UNION SELECT assigned_at FROM leases WHERE job = ?1
UNION SELECT started_at FROM leases WHERE job = ?1
UNION SELECT assigned_at FROM outcomes WHERE job = ?1
UNION SELECT started_at FROM outcomes WHERE job = ?1
UNION SELECT finished_at FROM outcomes WHERE job = ?1
UNION SELECT assigned_at FROM attempts WHERE job = ?1
UNION SELECT started_at FROM attempts WHERE job = ?1;

-- name: job_standing
-- The state of a job that ended or is leased; NULL for one that waits.
SELECT ifnull(o.state, l.state)
FROM jobs AS j
LEFT JOIN outcomes AS o ON o.job = j.id
LEFT JOIN leases AS l ON l.job = j.id
WHERE j.id = ?;

-- name: event_times
-- Also the time of the oldest event: retention has removed everything below it.
SELECT seq, at FROM events WHERE seq IN carray(?1) OR seq = (SELECT min(seq) FROM events);

-- name: insert_event_at
-- Under its own number; the next events follow it.
INSERT INTO events (
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: events_of_job
-- Reads the whole log, if nothing else finds them all.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events WHERE job = ? ORDER BY seq;

-- name: bump_counters
-- Each server has its own rows.
INSERT INTO counters (server, name, value) VALUES (?, ?, ?)
ON CONFLICT (server, name) DO UPDATE SET value = value + excluded.value;

-- name: counters
-- Summed over the servers.
SELECT name, sum(value) FROM counters GROUP BY name ORDER BY name;

-- name: oldest_event
-- Its number is above 1 once events were removed.
SELECT seq, at FROM events ORDER BY seq LIMIT 1;
