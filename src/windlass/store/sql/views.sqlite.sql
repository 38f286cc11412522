-- What lists and explanations show: the statements that only SQLite runs.

-- name: scan_jobs
-- Reads a bounded number of rows back from an id; the reader checks whether they match.
SELECT j.id, j.shape, o.state
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.id < ?1 ORDER BY j.id DESC LIMIT ?2;

-- name: scan_leases
-- The newest jobs under a lease.
SELECT l.job, j.shape, 0
FROM leases AS l CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.job < ?1 ORDER BY l.job DESC LIMIT ?2;

-- name: scan_due
-- The newest jobs that back off or are suspended, by the partial index.
SELECT job, shape, 0 FROM due INDEXED BY due_unplanned
WHERE job < ?1 AND state <> {state.queued} ORDER BY job DESC LIMIT ?2;

-- name: scan_bad
-- The newest jobs that ended badly, by the partial index.
SELECT o.job, j.shape, o.state
FROM outcomes AS o INDEXED BY outcomes_bad CROSS JOIN jobs AS j ON j.id = o.job
WHERE o.state > {state.completed} AND o.job < ?1 ORDER BY o.job DESC LIMIT ?2;

-- name: scan_ended
-- The newest ended jobs, without reading others.
SELECT o.job, j.shape, o.state
FROM outcomes AS o CROSS JOIN jobs AS j ON j.id = o.job
WHERE o.job < ?1 ORDER BY o.job DESC LIMIT ?2;

-- name: scan_ended_up
-- The oldest ones.
SELECT o.job, j.shape, o.state
FROM outcomes AS o CROSS JOIN jobs AS j ON j.id = o.job
WHERE o.job > ?1 ORDER BY o.job LIMIT ?2;

-- name: scan_workflow
-- The newest jobs of one workflow, by the partial index.
SELECT j.id, j.shape, o.state
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.workflow = ?3 AND j.id < ?1 ORDER BY j.id DESC LIMIT ?2;

-- name: scan_jobs_up
-- Reads a bounded number of rows forward from an id.
SELECT j.id, j.shape, o.state
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.id > ?1 ORDER BY j.id LIMIT ?2;

-- name: scan_leases_up
-- The oldest jobs under a lease.
SELECT l.job, j.shape, 0
FROM leases AS l CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.job > ?1 ORDER BY l.job LIMIT ?2;

-- name: scan_due_up
-- The oldest jobs that back off or are suspended, by the partial index.
SELECT job, shape, 0 FROM due INDEXED BY due_unplanned
WHERE job > ?1 AND state <> {state.queued} ORDER BY job LIMIT ?2;

-- name: scan_bad_up
-- The oldest jobs that ended badly, by the partial index.
SELECT o.job, j.shape, o.state
FROM outcomes AS o INDEXED BY outcomes_bad CROSS JOIN jobs AS j ON j.id = o.job
WHERE o.state > {state.completed} AND o.job > ?1 ORDER BY o.job LIMIT ?2;

-- name: scan_workflow_up
-- The oldest jobs of one workflow, by the partial index.
SELECT j.id, j.shape, o.state
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.workflow = ?3 AND j.id > ?1 ORDER BY j.id LIMIT ?2;

-- name: leases_by_start
-- There are few leases compared with jobs.
SELECT ifnull(started_at, assigned_at) AS since, job FROM leases
WHERE (ifnull(started_at, assigned_at), job) > (?1, ?2) ORDER BY since, job LIMIT ?3;

-- name: ready_first
-- Reads along the primary key, after a place.
SELECT rank, job FROM ready WHERE shape = ?1 AND (rank, job) > (?2, ?3) ORDER BY rank, job LIMIT ?4;

-- name: ends_between
-- Reads back along the primary key, between two numbers.
SELECT seq, job FROM events
WHERE seq >= ?1 AND seq < ?2 AND kind = {event.job}
    AND to_state >= {state.completed} AND to_state <> {state.suspended}
ORDER BY seq DESC LIMIT ?3;

-- name: job_texts
-- The fields that filters by time, failure and text look at.
SELECT j.id, j.created_at, o.finished_at, ifnull(o.failure, 0), o.message, o.reason, j.spec
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: light_jobs
-- The columns of a job that a list needs before it reads the job.
SELECT j.id, j.shape, o.state
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: job_moments
-- By primary keys, without the long columns; a blocked job may still have a lease.
SELECT
    j.id,
    coalesce(
        o.state, l.state, CASE WHEN w.job IS NOT NULL THEN {state.blocked} END, d.state, {state.queued}
    ),
    coalesce(l.attempt, o.attempt, j.attempt), coalesce(l.worker, o.worker),
    ifnull(w.manual, 0), ifnull(w.unmet, 0), j.created_at,
    coalesce(l.started_at, o.started_at), o.finished_at
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id
LEFT JOIN leases AS l ON l.job = j.id
LEFT JOIN waits AS w ON w.job = j.id
LEFT JOIN due AS d ON d.job = j.id;

-- name: ready_before
-- Reads each shape by the primary key, up to its share of the limit.
SELECT coalesce(sum(found.count), 0) FROM (
    SELECT (SELECT count(*) FROM (
        SELECT 1 FROM ready AS r
        WHERE r.shape = wanted.value AND (r.rank, r.job) < (?2, ?3) LIMIT ?4
    )) AS count
    FROM carray(?1) AS wanted
) AS found;

-- name: ready_within
-- Reads along the primary key between two places: its cost is the number of rows found.
SELECT count(*) FROM (
    SELECT 1 FROM ready
    WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) < (?4, ?5) LIMIT ?6
) AS below;

-- name: ready_sample
-- Both ends of a shape's jobs; a job at both ends is returned once.
SELECT
    j.id, CASE WHEN j.failed + j.lost + j.returned = 0 THEN j.age_from END, j.spec
FROM (
    SELECT rank, job FROM (
        SELECT rank, job FROM ready WHERE shape = ?1 ORDER BY rank, job LIMIT ?2
    ) AS first_ones
    UNION
    SELECT rank, job FROM (
        SELECT rank, job FROM ready WHERE shape = ?1 ORDER BY rank DESC, job DESC LIMIT ?2
    ) AS last_ones
) AS r CROSS JOIN jobs AS j ON j.id = r.job
ORDER BY r.rank, r.job;

-- name: fleet_events
-- Events about no job are among the unusual ones, whose condition must be repeated word for word.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events
WHERE job = 0 AND seq > ?1 AND seq <= ?2 AND kind IN ({event.worker}, {event.queue}, {event.loop}) AND
    CASE from_state
        WHEN {state.new} THEN to_state <> {state.queued}
        WHEN {state.queued} THEN to_state <> {state.assigned}
        WHEN {state.assigned} THEN to_state <> {state.running}
        WHEN {state.running} THEN to_state <> {state.completed}
        ELSE 1
    END
ORDER BY seq LIMIT ?3;

-- name: worker_events
-- Reads back along the primary key; the caller limits the length: few events name a worker, and
-- an index on it would make every job more expensive.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events
WHERE seq > ?1 AND seq <= ?2 AND worker = ?3
ORDER BY seq DESC LIMIT ?4;

-- name: pool_events
-- Among the unusual ones, like those about workers.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events
WHERE job = 0 AND seq > ?1 AND seq <= ?2 AND kind = {event.pool} AND
    CASE from_state
        WHEN {state.new} THEN to_state <> {state.queued}
        WHEN {state.queued} THEN to_state <> {state.assigned}
        WHEN {state.assigned} THEN to_state <> {state.running}
        WHEN {state.running} THEN to_state <> {state.completed}
        ELSE 1
    END
ORDER BY seq DESC LIMIT ?3;

-- name: census_of_jobs
-- A bounded part of each place; planned jobs count as queued, and kept waits as the job's state.
SELECT shape, state, count(*) FROM (
    SELECT shape, {state.blocked} AS state FROM (
        SELECT shape FROM waits WHERE manual <> {manual.kept_while_running} LIMIT ?1
    ) AS blocked
    UNION ALL
    SELECT shape, state FROM (
        SELECT shape, state FROM due WHERE state <> {state.queued} LIMIT ?1
    ) AS later
    UNION ALL
    SELECT j.shape, l.state
    FROM (SELECT job, state FROM leases LIMIT ?1) AS l CROSS JOIN jobs AS j ON j.id = l.job
) AS open_jobs GROUP BY shape, state ORDER BY shape, state;

-- name: census_of_workers
-- There are few workers compared with jobs.
SELECT status, count(*), sum(slots) FROM workers GROUP BY status ORDER BY status;

-- name: event_bounds
-- Both ends of the primary key.
SELECT
    coalesce((SELECT min(seq) FROM events), 1),
    coalesce((SELECT max(seq) FROM events), 0);
