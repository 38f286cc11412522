-- Rows of `jobs`, their attempts, dependents and keys: the statements that only PostgreSQL runs.

-- name: job_numbers
-- Rising numbers, many in one call.
SELECT coalesce(array_agg(nextval('job_ids')), '{}') FROM generate_series(1, $1);

-- name: insert_jobs
-- Columns that stay empty until an attempt closes are not named, so that they take no room.
INSERT INTO jobs (id, spec, shape, workflow, flags, rank, base, adjustment, age_from,
                  created_at, limit_id, timeout_ms, idle_ms, supersedes)
SELECT u.id, u.spec, coalesce(u.shape, $15), coalesce(u.workflow, $16),
       coalesce(u.flags, $17), coalesce(u.rank, $18), coalesce(u.base, $19),
       coalesce(u.adjustment, $20), coalesce(u.age_from, $21), coalesce(u.created_at, $22),
       coalesce(u.limit_id, $23), coalesce(u.timeout_ms, $24),
       coalesce(u.idle_ms, $25), coalesce(u.supersedes, $26)
FROM unnest($1::text::bigint[], $2::bytea[], $3::text::integer[], $4::text::bigint[],
            $5::text::integer[], $6::text::bigint[], $7::text::integer[], $8::text::integer[],
            $9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[],
            $13::text::bigint[], $14::text::bigint[])
     AS u (id, spec, shape, workflow, flags, rank, base, adjustment, age_from, created_at,
           limit_id, timeout_ms, idle_ms, supersedes);

-- name: lock_jobs
-- Locks out every other writer, in the order in which everybody locks.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: hold_jobs
-- The same for callers that need no columns.
SELECT id FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: share_jobs
-- Locks out writers only: a job must not end unnoticed while it gets a dependent.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR SHARE;

-- name: read_jobs
-- Not locked, for callers that base no decision on it.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id;

-- name: job_specs
-- What was submitted, to show or repeat it.
SELECT id, spec FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id;

-- name: job_results
-- The results of completed jobs, for the arguments of others.
SELECT id, result FROM jobs WHERE id = ANY ($1::text::bigint[]) AND result IS NOT NULL ORDER BY id;

-- name: note_tries
-- `lock_jobs` holds these rows.
UPDATE jobs j SET attempt = u.attempt, failed = u.failed, lost = u.lost,
                  returned = u.returned, handed_back = u.handed_back, excluded = u.excluded
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::smallint[],
            $4::text::smallint[], $5::text::smallint[], $6::text::smallint[], $7::text[])
     AS u (job, attempt, failed, lost, returned, handed_back, excluded)
WHERE j.id = u.job;

-- name: end_jobs
-- `lock_jobs` holds these rows. Those that did not complete (8) are also listed apart.
WITH ended AS (
    UPDATE jobs j SET
    state = coalesce(u.state, $17), flags = coalesce(u.flags, $18),
    attempt = coalesce(u.attempt, $19), failed = coalesce(u.failed, $20),
    lost = coalesce(u.lost, $21), worker = coalesce(u.worker, $22),
    incarnation = coalesce(u.incarnation, $23), assigned_at = coalesce(u.assigned_at, $24),
    started_at = coalesce(u.started_at, $25), finished_at = coalesce(u.finished_at, $26),
    failure = coalesce(u.failure, $27), exit_code = coalesce(u.exit_code, $28),
    message = coalesce(u.message, $29), reason = coalesce(u.reason, $30),
    result = coalesce(u.result, $31)
FROM unnest($1::text::bigint[], $2::text::smallint[], $3::text::integer[],
            $4::text::integer[], $5::text::smallint[], $6::text::smallint[],
            $7::text::bigint[], $8::text::bigint[], $9::text::bigint[], $10::text::bigint[],
            $11::text::bigint[], $12::text::smallint[], $13::text::integer[], $14::text[],
            $15::text[], $16::bytea[])
     AS u (job, state, flags, attempt, failed, lost, worker, incarnation, assigned_at,
           started_at, finished_at, failure, exit_code, message, reason, result)
WHERE j.id = u.job RETURNING j.id, j.state
)
INSERT INTO bad_ends (job, state) SELECT id, state FROM ended WHERE state > {state.completed}
ON CONFLICT (job) DO UPDATE SET state = excluded.state;

-- name: record_attempts
-- Closed attempts after which the job continued.
INSERT INTO attempts (job, number, worker, incarnation, state, failure, exit_code, message,
                      assigned_at, started_at, finished_at)
SELECT u.* FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                       $4::text::bigint[], $5::text::smallint[], $6::text::smallint[],
                       $7::text::integer[], $8::text[], $9::text::bigint[],
                       $10::text::bigint[], $11::text::bigint[]) AS u;

-- name: set_priority
-- `lock_jobs` holds the row.
UPDATE jobs SET adjustment = $2, age_from = $3, rank = $4,
    flags = CASE WHEN state IS NULL THEN $5 ELSE flags END
WHERE id = $1;

-- name: set_timeouts
-- The duration of the media is known now; `lock_jobs` holds the rows.
UPDATE jobs j SET timeout_ms = u.timeout_ms
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (job, timeout_ms) WHERE j.id = u.job;

-- name: set_superseded
-- `lock_jobs` holds the rows. A job is superseded at most once.
UPDATE jobs j SET superseded_by = u.successor
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (job, successor) WHERE j.id = u.job;

-- name: start_dependents
-- The first chunk of a list is also its lock: whoever inserts or locks it may append.
INSERT INTO dependents (job, chunk, edges)
SELECT u.job, 0, u.edges::bigint[] FROM unnest($1::text::bigint[], $2::text[]) AS u (job, edges)
ON CONFLICT DO NOTHING RETURNING job;

-- name: lock_dependents
-- Waits for others that append; a later statement reads the lengths.
SELECT job FROM dependents WHERE job = ANY ($1::text::bigint[]) AND chunk = 0
ORDER BY job FOR UPDATE;

-- name: dependents_ends
-- The last chunk of each list, and its length.
SELECT u.job, d.chunk, cardinality(d.edges)
FROM unnest($1::text::bigint[]) AS u (job)
CROSS JOIN LATERAL (
    SELECT chunk, edges FROM dependents WHERE job = u.job ORDER BY chunk DESC LIMIT 1
) AS d;

-- name: append_dependents
-- Fills the last chunk and adds new ones.
INSERT INTO dependents (job, chunk, edges)
SELECT u.job, u.chunk, u.edges::bigint[]
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text[]) AS u (job, chunk, edges)
ON CONFLICT (job, chunk) DO UPDATE SET edges = dependents.edges || excluded.edges;

-- name: dependents
-- One chunk of each list, so that no answer is large.
SELECT job, edges FROM dependents WHERE job = ANY ($1::text::bigint[]) AND chunk = $2
ORDER BY job;

-- name: claim_keys
-- In the order of keys, so that two submits with the same keys do not block each other.
INSERT INTO keys (namespace, key, job, digest, spans)
SELECT u.namespace, u.key, u.job, u.digest, u.spans
FROM unnest($1::text[], $2::text[], $3::text::bigint[], $4::text[], $5::text[])
     WITH ORDINALITY AS u (namespace, key, job, digest, spans, place)
ORDER BY u.namespace COLLATE "C", u.key COLLATE "C", u.place
ON CONFLICT DO NOTHING;

-- name: read_keys
-- A separate statement: only a new snapshot shows the key that won.
SELECT k.namespace, k.key, k.job, k.digest, k.spans
FROM unnest($1::text[], $2::text[]) AS u (namespace, key)
JOIN keys k ON k.namespace = u.namespace AND k.key = u.key;

-- name: retake_keys
-- Passes keys on, unless others have taken them meanwhile. Locks them in order first, so that two
-- callers that want the same ones do not block each other.
WITH wanted AS MATERIALIZED (
    SELECT u.namespace, u.key, u.job, u.digest, u.spans, u.old
    FROM unnest($1::text[], $2::text[], $3::text::bigint[], $4::text[], $5::text[],
                $6::text::bigint[]) AS u (namespace, key, job, digest, spans, old)
), held AS MATERIALIZED (
    SELECT k.namespace, k.key FROM keys k
    JOIN wanted w ON w.namespace = k.namespace AND w.key = k.key
    ORDER BY k.namespace, k.key FOR UPDATE OF k
)
UPDATE keys k SET job = w.job, digest = w.digest, spans = w.spans
FROM wanted w JOIN held h ON h.namespace = w.namespace AND h.key = w.key
WHERE k.namespace = w.namespace AND k.key = w.key AND k.job = w.old;
