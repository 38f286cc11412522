-- Whole steps of many jobs at once: the statements that only SQLite runs.

-- name: free_at_once
-- Tickets of jobs that these are the last conditions of, given as above, and whether they
-- need nothing but to be ready.
SELECT
    w.shape, w.rank, w.job, w.attempt, w.workflow, w.limit_id, w.excluded,
    w.manual = {manual.no} AND ifnull(w.not_before, 0) <= ?2 AND w.limit_id IS NULL
    AND w.age_from >= ?3
FROM carray(?1) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value >> 18
WHERE w.unmet <= wanted.value & 0x3ffff;

-- name: ready_from_waits
-- The rows just found, by primary key: cheaper than binding them again.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT w.shape, w.rank, w.job, w.attempt, w.workflow, w.limit_id, w.excluded
FROM carray(?) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value;

-- name: drop_waits
-- They are ready now.
DELETE FROM waits WHERE job IN carray(?);

-- name: insert_events
-- The columns of Event. The number it comes with is ignored: it gets the one after the
-- newest event.
INSERT INTO events (
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
) VALUES (? + NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: ready_from_jobs
-- Jobs that were just inserted and are ready at once: cheaper than binding them again.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id)
SELECT shape, rank, id, 0, workflow, limit_id FROM jobs WHERE id BETWEEN ? AND ?;

-- name: waits_from_jobs
-- The same for jobs that wait. Each value is a job and, in its lowest 18 bits, for how many
-- others it waits: one array, since two of them cannot be walked side by side.
INSERT INTO waits (
    job, unmet, manual, age_from, shape, rank, attempt, workflow, limit_id
)
SELECT
    j.id, wanted.value & 0x3ffff, {manual.no}, j.age_from, j.shape, j.rank, 0, j.workflow, j.limit_id
FROM carray(?) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value >> 18;

-- name: plain_leases
-- Running attempts of jobs without dependents, with what their end copies.
SELECT
    l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags, j.failed,
    j.lost
FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.job = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL AND j.workflow IS NULL
    AND NOT EXISTS (SELECT 1 FROM dependents AS d WHERE d.job = l.job)
    AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.job = l.job);

-- name: tied_leases
-- The same for jobs with a workflow or dependents, and what counts them.
SELECT
    l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags, j.failed,
    j.lost, j.shape, j.workflow
FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.job = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL
    AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.job = l.job);

-- name: plain_leases_between
-- The same for a stretch of jobs, if no job from ?2 to ?3 has dependents: asked once, not
-- for each.
SELECT
    l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags, j.failed,
    j.lost
FROM carray(?1) AS wanted
CROSS JOIN leases AS l ON l.job = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL AND j.workflow IS NULL
    AND NOT EXISTS (SELECT 1 FROM dependents AS d WHERE d.job BETWEEN ?2 AND ?3)
    AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.job BETWEEN ?2 AND ?3);

-- name: equal_events
-- Equal transitions of many jobs: all columns but the job are the same.
INSERT INTO events (
    at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor,
    data
)
SELECT ?1, ?2, value, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM carray(?11);

-- name: end_blocked
-- A job that runs while it keeps a wait (2) continues.
DELETE FROM waits WHERE job IN carray(?) AND manual <> {manual.kept_while_running} RETURNING job;

-- name: places_of_jobs
-- The places that these jobs would have in `ready`.
SELECT j.shape, j.rank, j.id FROM carray(?) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: end_ready_span
-- The jobs that are in one range of `ready`.
DELETE FROM ready
WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5) AND job IN carray(?6)
RETURNING job;

-- name: end_ready
-- The jobs that are in `ready`, one by one.
DELETE FROM ready WHERE (shape, rank, job) IN (
    SELECT j.shape, j.rank, j.id FROM carray(?) AS wanted
    CROSS JOIN jobs AS j ON j.id = wanted.value
) RETURNING job;

-- name: waited
-- The columns of Waited; all of them were in the state ?2.
SELECT j.id, ?2, j.shape, j.workflow, j.limit_id, j.flags, j.attempt
FROM carray(?1) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: end_waiting
-- The outcomes of jobs that end without an attempt.
INSERT INTO outcomes (
    job, state, flags, attempt, failed, lost, worker, incarnation, assigned_at, started_at,
    finished_at, failure, reason
)
SELECT j.id, ?2, j.flags, j.attempt, j.failed, j.lost, NULL, NULL, NULL, NULL, ?3, 0, ?4
FROM carray(?1) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;
