-- Rows of `jobs`, their attempts, dependents and keys: the statements that only SQLite runs.

-- name: insert_jobs
-- The columns of NewJob; the others have defaults.
INSERT INTO jobs (
    id, shape, workflow, flags, rank, base, adjustment, age_from, created_at, limit_id,
    timeout_ms, idle_ms, supersedes, spec
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_jobs
-- The columns of JobFacts; changes by an end are in `outcomes`.
SELECT
    j.id, j.shape, j.workflow, o.state, ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, j.handed_back, o.worker, o.incarnation,
    j.excluded
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: job_specs
-- What was submitted, as it was submitted.
SELECT id, spec FROM carray(?) AS wanted CROSS JOIN jobs ON id = wanted.value;

-- name: job_results
-- The results of completed jobs, for the arguments of others.
SELECT job, result FROM carray(?) AS wanted CROSS JOIN outcomes ON job = wanted.value
WHERE result IS NOT NULL;

-- name: note_tries
-- The counters of JobTry move; the job stays open.
UPDATE jobs SET attempt = ?2, failed = ?3, lost = ?4, returned = ?5, handed_back = ?6,
    excluded = ?7
WHERE id = ?1;

-- name: end_jobs
-- The columns of JobEnd. A second end of one job is refused by the primary key.
INSERT INTO outcomes (
    job, state, flags, attempt, failed, lost, worker, incarnation, assigned_at, started_at,
    finished_at, failure, exit_code, message, reason, result
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: record_attempts
-- The columns of Attempt: what came before the newest attempt.
INSERT INTO attempts (
    job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
    started_at, finished_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_priority
-- The new rank applies to later places; the engine moves the present one.
UPDATE jobs SET adjustment = ?2, age_from = ?3, rank = ?4, flags = ?5 WHERE id = ?1;

-- name: set_timeouts
-- The duration of the media is known now, and limits later attempts too.
UPDATE jobs SET timeout_ms = ?2 WHERE id = ?1;

-- name: set_superseded
-- A job is superseded at most once.
UPDATE jobs SET superseded_by = ?2 WHERE id = ?1;

-- name: last_dependents
-- The chunk to fill before the next one.
SELECT chunk, edges FROM dependents WHERE job = ? ORDER BY chunk DESC LIMIT 1;

-- name: put_dependents
-- A chunk is written whole: at most 1,000 edges of eight bytes.
INSERT OR REPLACE INTO dependents (job, chunk, edges) VALUES (?, ?, ?);

-- name: dependents
-- One chunk of each job that has it.
SELECT d.job, d.edges
FROM carray(?1) AS wanted CROSS JOIN dependents AS d ON d.job = wanted.value AND d.chunk = ?2;

-- name: claim_keys
-- The first keeps the key; it is read back.
INSERT INTO keys (namespace, key, job, digest, spans) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: read_keys
-- What now stands for a key.
SELECT namespace, key, job, digest, spans FROM keys WHERE namespace = ? AND key = ?;

-- name: retake_keys
-- Passes the key on, unless another job has taken it meanwhile.
UPDATE keys SET job = ?3, digest = ?4, spans = ?5
WHERE namespace = ?1 AND key = ?2 AND job = ?6;
