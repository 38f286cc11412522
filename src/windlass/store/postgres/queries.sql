-- Every statement of the PostgreSQL store.
--
-- Arrays of integers arrive as text (`$1::text::bigint[]`): asyncpg needs ten times as long
-- to write a binary array, and the server reads either in the same time. A column that has
-- the same value in all rows arrives as a scalar beside an empty array; `unnest` fills up
-- with NULL, and `coalesce` puts the scalar there.
--
-- Connections allow neither hash nor merge joins (see pool.py), so rows are visited in the
-- order of the arrays, which ascends by id.

-- name: begin
-- READ COMMITTED: each statement sees what was committed before it began, which the walk
-- through the places relies upon.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: begin_read
-- One snapshot for all statements of a read.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: now
-- The database's clock is the one clock of all servers.
SELECT windlass_now()

-- name: commit
-- The moment everything before it becomes true.
COMMIT

-- name: rollback
-- Nothing of it ever was.
ROLLBACK

-- name: transaction_status
-- What became of a transaction whose COMMIT was not answered.
SELECT pg_xact_status($1::text::xid8)

-- name: end_transaction
-- End a transaction that nobody can finish any more. A process number may be used again,
-- so the transaction's own number has to match.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = $1 AND backend_xid = ($2::text::xid8)::xid

-- name: job_numbers
-- Rising numbers, many in one call.
SELECT coalesce(array_agg(nextval('job_ids')), '{}') FROM generate_series(1, $1)

-- name: workflow_numbers
-- Rising numbers, many in one call.
SELECT coalesce(array_agg(nextval('workflow_ids')), '{}') FROM generate_series(1, $1)

-- name: insert_jobs
-- Columns that stay empty until an attempt closes are not named, so that they take no room.
INSERT INTO jobs (id, spec, shape, workflow, flags, rank, base, adjustment, age_from,
                  created_at, limit_id, timeout_ms, idle_ms, supersedes)
SELECT u.id, u.spec, coalesce(u.shape, $15), nullif(coalesce(u.workflow, $16), 0),
       coalesce(u.flags, $17), coalesce(u.rank, $18), coalesce(u.base, $19),
       coalesce(u.adjustment, $20), coalesce(u.age_from, $21), coalesce(u.created_at, $22),
       nullif(coalesce(u.limit_id, $23), 0), nullif(coalesce(u.timeout_ms, $24), 0),
       nullif(coalesce(u.idle_ms, $25), 0), nullif(coalesce(u.supersedes, $26), 0)
FROM unnest($1::text::bigint[], $2::bytea[], $3::text::integer[], $4::text::bigint[],
            $5::text::integer[], $6::text::bigint[], $7::text::integer[], $8::text::integer[],
            $9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[],
            $13::text::bigint[], $14::text::bigint[])
     AS u (id, spec, shape, workflow, flags, rank, base, adjustment, age_from, created_at,
           limit_id, timeout_ms, idle_ms, supersedes)

-- name: lock_jobs
-- Against every other writer, in the one order in which all lock.
SELECT id, shape, coalesce(workflow, 0), state, flags, rank, base, adjustment, age_from,
       created_at, coalesce(limit_id, 0), coalesce(timeout_ms, 0), coalesce(idle_ms, 0),
       coalesce(supersedes, 0), coalesce(superseded_by, 0), attempt, failed, lost, returned,
       coalesce(worker, 0), coalesce(incarnation, 0), excluded
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- name: hold_jobs
-- The same for those who need no columns.
SELECT id FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- name: hold_waits
-- In the one order in which all lock.
SELECT job FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE

-- name: share_jobs
-- Against writers only: a job that gets a dependent must not end unseen.
SELECT id, shape, coalesce(workflow, 0), state, flags, rank, base, adjustment, age_from,
       created_at, coalesce(limit_id, 0), coalesce(timeout_ms, 0), coalesce(idle_ms, 0),
       coalesce(supersedes, 0), coalesce(superseded_by, 0), attempt, failed, lost, returned,
       coalesce(worker, 0), coalesce(incarnation, 0), excluded
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR SHARE

-- name: read_jobs
-- As they are now, for those who do not decide by it.
SELECT id, shape, coalesce(workflow, 0), state, flags, rank, base, adjustment, age_from,
       created_at, coalesce(limit_id, 0), coalesce(timeout_ms, 0), coalesce(idle_ms, 0),
       coalesce(supersedes, 0), coalesce(superseded_by, 0), attempt, failed, lost, returned,
       coalesce(worker, 0), coalesce(incarnation, 0), excluded
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id

-- name: job_specs
-- What was submitted, for those who show or repeat it.
SELECT id, spec FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id

-- name: note_tries
-- `lock_jobs` holds these rows.
UPDATE jobs j SET attempt = u.attempt, failed = u.failed, lost = u.lost,
                  returned = u.returned, excluded = u.excluded
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::smallint[],
            $4::text::smallint[], $5::text::smallint[], $6::text[])
     AS u (job, attempt, failed, lost, returned, excluded)
WHERE j.id = u.job

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
ON CONFLICT (job) DO UPDATE SET state = excluded.state

-- name: record_attempts
-- Closed attempts after which the job went on.
INSERT INTO attempts (job, number, worker, incarnation, state, failure, exit_code, message,
                      assigned_at, started_at, finished_at)
SELECT u.* FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                       $4::text::bigint[], $5::text::smallint[], $6::text::smallint[],
                       $7::text::integer[], $8::text[], $9::text::bigint[],
                       $10::text::bigint[], $11::text::bigint[]) AS u

-- name: attempts
-- Ascending by number within each job.
SELECT job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
       started_at, finished_at
FROM attempts WHERE job = ANY ($1::text::bigint[]) ORDER BY job, number

-- name: set_priority
-- `lock_jobs` holds the row.
UPDATE jobs SET adjustment = $2, age_from = $3, rank = $4,
    flags = CASE WHEN state = {state.open} THEN $5 ELSE flags END
WHERE id = $1

-- name: set_superseded
-- `lock_jobs` holds the row; a job is superseded by one other at most.
UPDATE jobs SET superseded_by = $2 WHERE id = $1

-- name: start_dependents
-- The first chunk of a list is also its lock: who inserts it, or locks it, may append.
INSERT INTO dependents (job, chunk, edges)
SELECT u.job, 0, u.edges::bigint[] FROM unnest($1::text::bigint[], $2::text[]) AS u (job, edges)
ON CONFLICT DO NOTHING RETURNING job

-- name: lock_dependents
-- Wait for others who append; the lengths are read by a statement that begins afterwards.
SELECT job FROM dependents WHERE job = ANY ($1::text::bigint[]) AND chunk = 0
ORDER BY job FOR UPDATE

-- name: dependents_ends
-- The last chunk of each list and how full it is.
SELECT u.job, d.chunk, cardinality(d.edges)
FROM unnest($1::text::bigint[]) AS u (job)
CROSS JOIN LATERAL (
    SELECT chunk, edges FROM dependents WHERE job = u.job ORDER BY chunk DESC LIMIT 1
) AS d

-- name: append_dependents
-- Fill the last chunk and begin new ones.
INSERT INTO dependents (job, chunk, edges)
SELECT u.job, u.chunk, u.edges::bigint[]
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text[]) AS u (job, chunk, edges)
ON CONFLICT (job, chunk) DO UPDATE SET edges = dependents.edges || excluded.edges

-- name: dependents
-- One chunk of each list, so that no answer is large.
SELECT job, edges FROM dependents WHERE job = ANY ($1::text::bigint[]) AND chunk = $2
ORDER BY job

-- name: claim_keys
-- In the order of keys, so that two submits with the same keys do not block each other.
INSERT INTO keys (namespace, key, job, digest, spans)
SELECT u.namespace, u.key, u.job, u.digest, u.spans
FROM unnest($1::text[], $2::text[], $3::text::bigint[], $4::text[], $5::text[])
     WITH ORDINALITY AS u (namespace, key, job, digest, spans, place)
ORDER BY u.namespace COLLATE "C", u.key COLLATE "C", u.place
ON CONFLICT DO NOTHING

-- name: read_keys
-- A statement of its own: only a new snapshot shows the key that won.
SELECT k.namespace, k.key, k.job, k.digest, k.spans
FROM unnest($1::text[], $2::text[]) AS u (namespace, key)
JOIN keys k ON k.namespace = u.namespace AND k.key = u.key

-- name: point_key
-- A retry by hand takes over the key of the job it supersedes.
UPDATE keys SET job = $3 WHERE namespace = $1 AND key = $2

-- name: add_ready
-- The hot place: seven narrow columns and one index.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT coalesce(u.shape, $8), coalesce(u.rank, $9), u.job, coalesce(u.attempt, $10),
       nullif(coalesce(u.workflow, $11), 0), nullif(coalesce(u.limit_id, $12), 0),
       coalesce(u.excluded, $13)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded)

-- name: add_parked
-- As `add_ready`, under a limit.
INSERT INTO parked (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT coalesce(u.shape, $8), coalesce(u.rank, $9), u.job, coalesce(u.attempt, $10),
       nullif(coalesce(u.workflow, $11), 0), coalesce(u.limit_id, $12),
       coalesce(u.excluded, $13)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded)

-- name: add_waits
-- As `add_ready`, with what the job waits for.
INSERT INTO waits (shape, rank, job, attempt, workflow, limit_id, excluded, unmet, manual,
                   not_before, age_from)
SELECT coalesce(u.shape, $12), coalesce(u.rank, $13), u.job, coalesce(u.attempt, $14),
       nullif(coalesce(u.workflow, $15), 0), nullif(coalesce(u.limit_id, $16), 0),
       coalesce(u.excluded, $17), coalesce(u.unmet, $18), coalesce(u.manual, $19),
       coalesce(u.not_before, $20), coalesce(u.age_from, $21)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[],
            $8::text::integer[], $9::text::smallint[], $10::text::bigint[],
            $11::text::bigint[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded, unmet, manual, not_before,
           age_from)

-- name: add_due
-- As `add_ready`, with the time from which the job may start.
INSERT INTO due (shape, rank, job, attempt, workflow, limit_id, excluded, at, state)
SELECT coalesce(u.shape, $10), coalesce(u.rank, $11), u.job, coalesce(u.attempt, $12),
       nullif(coalesce(u.workflow, $13), 0), nullif(coalesce(u.limit_id, $14), 0),
       coalesce(u.excluded, $15), coalesce(u.at, $16), coalesce(u.state, $17)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[],
            $8::text::bigint[], $9::text::smallint[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded, at, state)

-- name: meet
-- The lock comes first and in order. What another transaction changed meanwhile is seen by
-- the lock and, through it, by both changes below.
WITH locked AS MATERIALIZED (
    SELECT w.job, w.unmet - u.met AS left_over
    FROM unnest($1::text::bigint[], $2::text::integer[]) AS u (job, met)
    JOIN waits w ON w.job = u.job
    WHERE w.manual = {manual.yes} OR NOT $3::boolean
    ORDER BY w.job FOR UPDATE OF w
), freed AS (
    DELETE FROM waits w USING locked l WHERE w.job = l.job AND l.left_over <= 0
    RETURNING w.job, l.left_over, CASE WHEN $3 THEN {manual.no} ELSE w.manual END, w.not_before,
              w.age_from, w.shape, w.rank, w.attempt, coalesce(w.workflow, 0), coalesce(w.limit_id, 0),
              w.excluded
), lowered AS (
    UPDATE waits w SET unmet = l.left_over, manual = CASE WHEN $3 THEN {manual.no} ELSE w.manual END
    FROM locked l WHERE w.job = l.job AND l.left_over > 0
)
SELECT * FROM freed ORDER BY job

-- name: lock_waits
-- Lock and read.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, coalesce(workflow, 0),
       coalesce(limit_id, 0), excluded
FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE

-- name: read_waits
-- Without locks, for reads.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, coalesce(workflow, 0),
       coalesce(limit_id, 0), excluded
FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: take_waits
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT job FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE
), taken AS (
    DELETE FROM waits w USING locked l WHERE w.job = l.job
    RETURNING w.job, w.unmet, w.manual, w.not_before, w.age_from, w.shape, w.rank, w.attempt,
              coalesce(w.workflow, 0), coalesce(w.limit_id, 0), w.excluded
)
SELECT * FROM taken ORDER BY job

-- name: take_due
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT job FROM due WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE
), taken AS (
    DELETE FROM due d USING locked l WHERE d.job = l.job
    RETURNING d.at, d.job, d.state, d.shape, d.rank, d.attempt, coalesce(d.workflow, 0),
              coalesce(d.limit_id, 0), d.excluded
)
SELECT * FROM taken ORDER BY job

-- name: take_parked
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT p.limit_id, p.shape, p.rank, p.job
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::integer[],
                $4::text::bigint[]) AS u (job, limit_id, shape, rank)
    JOIN parked p ON p.limit_id = u.limit_id AND p.shape = u.shape AND p.rank = u.rank
                 AND p.job = u.job
    ORDER BY p.job FOR UPDATE OF p
), taken AS (
    DELETE FROM parked p USING locked l
    WHERE p.limit_id = l.limit_id AND p.shape = l.shape AND p.rank = l.rank AND p.job = l.job
    RETURNING p.shape, p.rank, p.job, p.attempt, coalesce(p.workflow, 0), p.limit_id,
              p.excluded
)
SELECT * FROM taken ORDER BY job

-- name: take_ready
-- The lock comes first and in order; it waits for a claim in force to commit or give up.
WITH locked AS MATERIALIZED (
    SELECT r.shape, r.rank, r.job
    FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[])
         AS u (job, shape, rank)
    JOIN ready r ON r.shape = u.shape AND r.rank = u.rank AND r.job = u.job
    ORDER BY r.job FOR UPDATE OF r
), taken AS (
    DELETE FROM ready r USING locked l
    WHERE r.shape = l.shape AND r.rank = l.rank AND r.job = l.job
    RETURNING r.shape, r.rank, r.job, r.attempt, coalesce(r.workflow, 0),
              coalesce(r.limit_id, 0), r.excluded
)
SELECT * FROM taken ORDER BY job

-- name: pull_due
-- Several servers pull at once; none waits for another.
WITH picked AS MATERIALIZED (
    SELECT job FROM due WHERE at <= $1 ORDER BY at, job LIMIT $2 FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM due d USING picked p WHERE d.job = p.job
    RETURNING d.at, d.job, d.state, d.shape, d.rank, d.attempt, coalesce(d.workflow, 0),
              coalesce(d.limit_id, 0), d.excluded
)
SELECT * FROM taken ORDER BY at, job

-- name: next_due
-- When to look again.
SELECT coalesce((SELECT at FROM due ORDER BY at, job LIMIT 1), 0)

-- name: peek
-- Each probe begins at its own bound in the index, so that dead entries below it are not
-- met and the cost does not grow with the queue.
SELECT r.shape, r.rank, r.job, r.attempt, coalesce(r.workflow, 0), coalesce(r.limit_id, 0),
       r.excluded
FROM unnest($1::text::integer[], $2::text::bigint[], $3::text::bigint[],
            $4::text::integer[]) AS p (shape, rank, job, count)
CROSS JOIN LATERAL (
    SELECT * FROM ready
    WHERE shape = p.shape AND (rank, job) >= (p.rank, p.job)
    ORDER BY rank, job LIMIT p.count FOR UPDATE SKIP LOCKED
) AS r

-- name: read_ready
-- Without locks, for reads.
SELECT r.shape, r.rank, r.job, r.attempt, coalesce(r.workflow, 0), coalesce(r.limit_id, 0),
       r.excluded
FROM unnest($1::text::integer[], $2::text::bigint[], $3::text::bigint[],
            $4::text::integer[]) AS p (shape, rank, job, count)
CROSS JOIN LATERAL (
    SELECT * FROM ready
    WHERE shape = p.shape AND (rank, job) >= (p.rank, p.job)
    ORDER BY rank, job LIMIT p.count
) AS r

-- name: park
-- `peek` holds these rows.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                         $4::text::integer[], $5::text::bigint[], $6::text::bigint[],
                         $7::text[])
                  AS u (job, shape, rank, attempt, workflow, limit_id, excluded)
), taken AS (
    DELETE FROM ready r USING given g
    WHERE r.shape = g.shape AND r.rank = g.rank AND r.job = g.job
)
INSERT INTO parked (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT shape, rank, job, attempt, nullif(workflow, 0), limit_id, excluded FROM given

-- name: heads
-- A loose index scan: one descent for each shape, however many jobs it has.
WITH RECURSIVE heads AS (
    (SELECT shape, rank, job FROM ready ORDER BY shape, rank, job LIMIT 1)
    UNION ALL
    SELECT n.shape, n.rank, n.job FROM heads h CROSS JOIN LATERAL (
        SELECT shape, rank, job FROM ready WHERE shape > h.shape
        ORDER BY shape, rank, job LIMIT 1
    ) AS n
)
SELECT shape, rank, job FROM heads

-- name: count_ready
-- Limits are small numbers, and so are these counts.
SELECT count(*) FROM ready WHERE limit_id = $1 AND shape = $2

-- name: worst_ready
-- No more than the limit allows are sorted. What a claim holds is passed over.
SELECT shape, rank, job, attempt, coalesce(workflow, 0), limit_id, excluded
FROM ready WHERE limit_id = $1 AND shape = $2
ORDER BY rank DESC, job DESC LIMIT 1 FOR UPDATE SKIP LOCKED

-- name: best_parked
-- A loose index scan over the limit's shapes. It passes over rows that others hold: the
-- limit is locked, so waiting here could end in a deadlock.
WITH RECURSIVE found AS (
    (SELECT shape FROM parked WHERE limit_id = $1 ORDER BY shape LIMIT 1)
    UNION ALL
    SELECT n.shape FROM found f CROSS JOIN LATERAL (
        SELECT shape FROM parked WHERE limit_id = $1 AND shape > f.shape
        ORDER BY shape LIMIT 1
    ) AS n
)
SELECT p.shape, p.rank, p.job, p.attempt, coalesce(p.workflow, 0), p.limit_id, p.excluded
FROM found f CROSS JOIN LATERAL (
    SELECT * FROM parked WHERE limit_id = $1 AND shape = f.shape
    ORDER BY rank, job LIMIT $2 FOR UPDATE SKIP LOCKED
) AS p

-- name: unpark
-- `best_parked` holds these rows.
DELETE FROM parked p
USING unnest($1::text::bigint[], $2::text::bigint[], $3::text::integer[],
             $4::text::bigint[]) AS u (job, limit_id, shape, rank)
WHERE p.limit_id = u.limit_id AND p.shape = u.shape AND p.rank = u.rank AND p.job = u.job

-- name: grant
-- One statement turns ready jobs into leases: `peek` holds the rows of `ready`, `jobs` is
-- only read, and the lease's number comes back beside its job. Numbers are drawn first and
-- once, for a join may take its rows in any order, and several times. State 4 is running.
WITH numbered AS MATERIALIZED (
    SELECT *, nextval('lease_numbers') AS lease
    FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                $4::text::bigint[], $5::text::integer[], $6::text::bigint[],
                $7::text::bigint[])
         AS v (job, attempt, worker, incarnation, shape, rank, limit_id)
), given AS MATERIALIZED (
    SELECT u.job, coalesce(u.attempt, $10) AS attempt, u.lease,
           coalesce(u.worker, $11) AS worker, coalesce(u.incarnation, $12) AS incarnation,
           coalesce(u.shape, $13) AS shape, coalesce(u.rank, $14) AS rank,
           nullif(coalesce(u.limit_id, $15), 0) AS limit_id, j.timeout_ms, j.idle_ms, j.spec
    FROM numbered u JOIN jobs j ON j.id = u.job
), taken AS (
    DELETE FROM ready r USING given g
    WHERE r.shape = g.shape AND r.rank = g.rank AND r.job = g.job
), leased AS (
    INSERT INTO leases (job, attempt, lease, worker, incarnation, state, assigned_at,
                        started_at, activity_at, deadline_at, timeout_ms, idle_ms, limit_id)
    SELECT job, attempt, lease, worker, incarnation, $8::smallint, $9::bigint,
           CASE WHEN $8 = 4 THEN $9 ELSE 0 END, 0,
           CASE WHEN $8 = 4 THEN coalesce($9 + least(timeout_ms, idle_ms) + $16::bigint, 0)
                ELSE $9 + $16 END,
           timeout_ms, idle_ms, limit_id
    FROM given
)
SELECT job, attempt, lease, worker, coalesce(timeout_ms, 0), coalesce(idle_ms, 0), spec
FROM given ORDER BY lease

-- name: lock_leases
-- The jobs are locked already where a lease is to end; the order is the same.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, coalesce(timeout_ms, 0), coalesce(idle_ms, 0), coalesce(limit_id, 0), reason,
       coalesce(queue_limit, 0)
FROM leases WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE

-- name: read_leases
-- Without locks, for reads.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, coalesce(timeout_ms, 0), coalesce(idle_ms, 0), coalesce(limit_id, 0), reason,
       coalesce(queue_limit, 0)
FROM leases WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: leases_of_workers
-- What a worker holds, in the order in which it was given.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, coalesce(timeout_ms, 0), coalesce(idle_ms, 0), coalesce(limit_id, 0), reason,
       coalesce(queue_limit, 0)
FROM leases WHERE worker = ANY ($1::text::bigint[]) ORDER BY lease

-- name: stopped_leases
-- Asked with every sync and nearly always empty: a partial index answers it.
SELECT worker, incarnation, job, attempt, state, reason
FROM leases WHERE worker = ANY ($1::text::bigint[]) AND reason IS NOT NULL ORDER BY lease

-- name: count_leases
-- What a worker holds already counts against its slots.
SELECT worker, count(*) FROM leases WHERE worker = ANY ($1::text::bigint[]) GROUP BY worker

-- name: overdue_leases
-- A walk over all leases, every few seconds: an index would cost more at every claim.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, coalesce(timeout_ms, 0), coalesce(idle_ms, 0), coalesce(limit_id, 0), reason,
       coalesce(queue_limit, 0)
FROM leases WHERE state IN ({state.assigned}, {state.running}) AND deadline_at BETWEEN 1 AND $1
ORDER BY deadline_at, job LIMIT $2

-- name: orphaned_leases
-- A walk over all leases, every few seconds.
SELECT l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at,
       l.started_at, l.activity_at, l.deadline_at, coalesce(l.timeout_ms, 0),
       coalesce(l.idle_ms, 0), coalesce(l.limit_id, 0), l.reason, coalesce(l.queue_limit, 0)
FROM leases l LEFT JOIN workers w ON w.id = l.worker
WHERE w.id IS NULL OR w.incarnation > l.incarnation
ORDER BY l.job LIMIT $1

-- name: start_leases
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT l.job, u.started_at, u.deadline_at
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[])
         AS u (job, started_at, deadline_at)
    JOIN leases l ON l.job = u.job ORDER BY l.job FOR NO KEY UPDATE OF l
)
UPDATE leases l SET state = {state.running}, started_at = k.started_at, deadline_at = k.deadline_at
FROM locked k WHERE l.job = k.job AND l.state = {state.assigned}

-- name: mark_leases
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT job FROM leases WHERE job = ANY ($1::text::bigint[])
    ORDER BY job FOR NO KEY UPDATE
)
UPDATE leases l SET state = $2, reason = $3 FROM locked k WHERE l.job = k.job

-- name: allow_leases
-- How long the media is was found out. The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT l.job, u.timeout_ms, u.deadline_at
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[])
         AS u (job, timeout_ms, deadline_at)
    JOIN leases l ON l.job = u.job ORDER BY l.job FOR NO KEY UPDATE OF l
)
UPDATE leases l SET timeout_ms = k.timeout_ms, deadline_at = k.deadline_at
FROM locked k WHERE l.job = k.job

-- name: touch_leases
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT l.job, u.activity_at, u.deadline_at
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[])
         AS u (job, activity_at, deadline_at)
    JOIN leases l ON l.job = u.job ORDER BY l.job FOR NO KEY UPDATE OF l
)
UPDATE leases l SET activity_at = k.activity_at, deadline_at = k.deadline_at
FROM locked k WHERE l.job = k.job

-- name: drop_leases
-- `lock_leases` holds these rows; without it they are still met in ascending order.
DELETE FROM leases l USING unnest($1::text::bigint[]) AS u (job) WHERE l.job = u.job

-- name: lock_workers
-- Workers are the first to be locked.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- name: lock_worker_name
-- Enrolment knows the name only.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE name = $1 FOR NO KEY UPDATE

-- name: insert_worker
-- Two enrolments of one name at once: the second waits for the first and answers nothing.
INSERT INTO workers (id, name, incarnation, seq, status, last_seen, last_lease, slots, static,
                     dynamic, troubles, reason, enrolled_at)
VALUES (nextval('worker_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: update_workers
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT u.* FROM unnest(
        $1::text::bigint[], $2::text[], $3::text::bigint[], $4::text::bigint[],
        $5::text::smallint[], $6::text::bigint[], $7::text::bigint[], $8::text::integer[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text::bigint[]
    ) AS u (id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
            troubles, reason, enrolled_at)
    JOIN workers w ON w.id = u.id ORDER BY w.id FOR UPDATE OF w
)
UPDATE workers w SET
    name = k.name, incarnation = k.incarnation, seq = k.seq, status = k.status,
    last_seen = k.last_seen, last_lease = k.last_lease, slots = k.slots, static = k.static,
    dynamic = k.dynamic, troubles = k.troubles, reason = k.reason, enrolled_at = k.enrolled_at
FROM locked k WHERE w.id = k.id

-- name: beat_workers
-- The lock comes first and in order. No index has these columns, so the update stays in
-- its page.
WITH locked AS MATERIALIZED (
    SELECT w.id, u.seq, u.last_seen, u.last_lease
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[],
                $4::text::bigint[]) AS u (id, seq, last_seen, last_lease)
    JOIN workers w ON w.id = u.id ORDER BY w.id FOR NO KEY UPDATE OF w
)
UPDATE workers w SET seq = k.seq, last_seen = k.last_seen, last_lease = k.last_lease
FROM locked k WHERE w.id = k.id

-- name: remove_worker
-- Its leases become orphans.
DELETE FROM workers WHERE id = $1

-- name: all_workers
-- A fleet is thousands, not millions.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers ORDER BY id

-- name: silent_workers
-- A walk over the fleet by the health loop: an index on last_seen would slow every sync.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE last_seen < $1 AND status = ANY ($2::smallint[]) ORDER BY id

-- name: insert_workflows
-- The counts arrive as texts: arrays of arrays would be unnested to the ground.
INSERT INTO workflows (id, namespace, name, state, run, flags, created_at, finished_at, counts)
SELECT u.id, u.namespace, u.name, u.state, u.run, u.flags, u.created_at, u.finished_at,
       u.counts::integer[]
FROM unnest($1::text::bigint[], $2::text[], $3::text[], $4::text::smallint[],
            $5::text::integer[], $6::text::integer[], $7::text::bigint[], $8::text::bigint[],
            $9::text[])
     AS u (id, namespace, name, state, run, flags, created_at, finished_at, counts)

-- name: lock_workflows
-- Workflows are the last rows to be locked.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- name: read_workflows
-- Without locks, for reads.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id = ANY ($1::text::bigint[]) ORDER BY id

-- name: bump_workflows
-- The lock comes first and in order. $2 holds $3 numbers for each workflow, one for each
-- state.
WITH given AS MATERIALIZED (
    SELECT $2::text::integer[] AS deltas
), locked AS MATERIALIZED (
    SELECT w.id, u.place
    FROM unnest($1::text::bigint[]) WITH ORDINALITY AS u (id, place)
    JOIN workflows w ON w.id = u.id ORDER BY w.id FOR NO KEY UPDATE OF w
), bumped AS (
    UPDATE workflows w SET counts = ARRAY(
        SELECT c.number + coalesce(g.deltas[(k.place - 1) * $3::bigint + c.state], 0)
        FROM unnest(w.counts) WITH ORDINALITY AS c (number, state) ORDER BY c.state
    )
    FROM given g, locked k WHERE w.id = k.id
    RETURNING w.id, w.namespace, w.name, w.state, w.run, w.flags, w.created_at, w.finished_at,
              w.counts
)
SELECT * FROM bumped ORDER BY id

-- name: set_workflow_states
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT w.id, u.state, u.run, u.finished_at
    FROM unnest($1::text::bigint[], $2::text::smallint[], $3::text::integer[],
                $4::text::bigint[]) AS u (id, state, run, finished_at)
    JOIN workflows w ON w.id = u.id ORDER BY w.id FOR NO KEY UPDATE OF w
)
UPDATE workflows w SET state = k.state, run = k.run, finished_at = k.finished_at
FROM locked k WHERE w.id = k.id

-- name: add_cascades
-- Numbered in the order given: the oldest is worked on first.
INSERT INTO cascades (job, workflow, kind, cursor, reason)
SELECT u.job, u.workflow, u.kind, u.cursor, u.reason
FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::smallint[], $4::text::bigint[],
            $5::text[]) AS u (job, workflow, kind, cursor, reason)

-- name: pull_cascade
-- Several servers work on different intents.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED

-- name: advance_cascade
-- `pull_cascade` holds the row.
UPDATE cascades SET cursor = $2 WHERE id = $1

-- name: remove_cascade
-- `pull_cascade` holds the row.
DELETE FROM cascades WHERE id = $1

-- name: cascades_of
-- What is still to happen to the dependents of these jobs, and to all jobs of these workflows.
SELECT id, job, workflow, kind, cursor, reason FROM cascades
WHERE job = ANY ($1::text::bigint[]) OR workflow = ANY ($2::text::bigint[])
ORDER BY id

-- name: describe_workflow
-- What it was submitted with.
INSERT INTO workflow_about (workflow, base, key, reason, body) VALUES ($1, $2, $3, $4, $5)

-- name: workflow_about
-- By primary key.
SELECT workflow, base, key, reason, body FROM workflow_about
WHERE workflow = ANY ($1::text::bigint[]) ORDER BY workflow

-- name: all_workflow_about
-- For comparing and verifying.
SELECT workflow, base, key, reason, body FROM workflow_about ORDER BY workflow

-- name: set_workflow_reason
-- Why it was canceled.
UPDATE workflow_about SET reason = $2 WHERE workflow = $1

-- name: claim_workflow_key
-- The key is new, or names the one that is to be replaced; else it stays as it is.
INSERT INTO workflow_keys AS k (namespace, key, workflow) VALUES ($1, $2, $3)
ON CONFLICT (namespace, key) DO UPDATE SET workflow = excluded.workflow WHERE k.workflow = $4

-- name: workflow_key
-- A statement of its own: only a new snapshot shows who won.
SELECT workflow FROM workflow_keys WHERE namespace = $1 AND key = $2

-- name: all_workflow_keys
-- For comparing and verifying.
SELECT namespace, key, workflow FROM workflow_keys
ORDER BY namespace COLLATE "C", key COLLATE "C"

-- name: jobs_of_workflow
-- Along the partial index from an id on.
SELECT id, shape, coalesce(workflow, 0), state, flags, rank, base, adjustment, age_from,
       created_at, coalesce(limit_id, 0), coalesce(timeout_ms, 0), coalesce(idle_ms, 0),
       coalesce(supersedes, 0), coalesce(superseded_by, 0), attempt, failed, lost, returned,
       coalesce(worker, 0), coalesce(incarnation, 0), excluded
FROM jobs WHERE workflow = $1 AND id > $2 ORDER BY workflow, id LIMIT $3

-- name: open_jobs_of_workflow
-- Along the partial index from an id on.
SELECT id FROM jobs WHERE workflow = $1 AND id > $2 AND state = {state.open} ORDER BY workflow, id LIMIT $3

-- name: jobs_outside
-- By primary key.
SELECT id FROM jobs WHERE id = ANY ($2::text::bigint[]) AND coalesce(workflow, 0) <> $1
ORDER BY id

-- name: unfinished_workflows
-- By the partial index: 1 to 3 are the states that are no ends.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE state < {workflow.complete} AND id > $1 ORDER BY id LIMIT $2

-- name: newest_workflows
-- A bounded walk back from an id.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id < $1 ORDER BY id DESC LIMIT $2

-- name: recount_workflow
-- Each job by its end or its place (blocked if it stands nowhere), and whether it is forgiven.
SELECT CASE
           WHEN j.state > {state.open} THEN j.state
           WHEN l.state IS NOT NULL THEN l.state
           WHEN d.state IS NOT NULL THEN d.state
           WHEN r.job IS NOT NULL OR p.job IS NOT NULL THEN {state.queued}
           ELSE {state.blocked}
       END AS standing,
       j.state > {state.completed} AND j.flags & {flag.allow_failure} <> 0 AS forgiven, count(*)
FROM jobs j
LEFT JOIN leases l ON l.job = j.id
LEFT JOIN due d ON d.job = j.id
LEFT JOIN ready r ON r.shape = j.shape AND r.rank = j.rank AND r.job = j.id
LEFT JOIN parked p
    ON p.limit_id = j.limit_id AND p.shape = j.shape AND p.rank = j.rank AND p.job = j.id
WHERE j.workflow = $1 AND j.superseded_by IS NULL
GROUP BY standing, forgiven

-- name: find_limits
-- Keys that are known, with their maximum: mostly nothing has to change.
SELECT l.namespace, l.key, l.id, l.max FROM unnest($1::text[], $2::text[]) AS u (namespace, key)
JOIN limits l ON l.namespace = u.namespace AND l.key = u.key

-- name: insert_limits
-- Numbered in the order given, inserted in the order of keys, so that two submits do not
-- block each other.
INSERT INTO limits (id, namespace, key, max, leased)
SELECT n.id, n.namespace, n.key, n.max, 0
FROM (SELECT nextval('limit_ids') AS id, namespace, key, max
      FROM unnest($1::text[], $2::text[], $3::text::bigint[]) AS u (namespace, key, max)
      OFFSET 0) AS n
ORDER BY n.namespace COLLATE "C", n.key COLLATE "C"
ON CONFLICT (namespace, key) DO NOTHING

-- name: set_limits
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT l.id, u.max FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (id, max)
    JOIN limits l ON l.id = u.id ORDER BY l.id FOR NO KEY UPDATE OF l
)
UPDATE limits l SET max = k.max FROM locked k WHERE l.id = k.id AND l.max <> k.max

-- name: lock_limits
-- After places, before workflows.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id FOR NO KEY UPDATE

-- name: read_limits
-- Without locks, for reads.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id

-- name: lock_free_limits
-- For a claim that holds limits behind these already: waiting here could end in a deadlock.
SELECT id, namespace, key, max, leased FROM limits WHERE id = ANY ($1::text::bigint[])
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- name: parked_limits
-- A loose index scan: one descent for each limit.
WITH RECURSIVE found AS (
    (SELECT limit_id FROM parked ORDER BY limit_id LIMIT 1)
    UNION ALL
    SELECT n.limit_id FROM found f CROSS JOIN LATERAL (
        SELECT limit_id FROM parked WHERE limit_id > f.limit_id ORDER BY limit_id LIMIT 1
    ) AS n
)
SELECT limit_id FROM found

-- name: bump_limits
-- `lock_limits` holds these rows.
UPDATE limits l SET leased = l.leased + u.delta
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS u (id, delta) WHERE l.id = u.id

-- name: find_shapes
-- Shapes that are known: mostly all.
SELECT digest, id FROM shapes WHERE digest = ANY ($1::text[])

-- name: insert_shapes
-- Numbered in the order given, inserted in the order of digests, so that two submits do
-- not block each other.
INSERT INTO shapes (id, digest, body)
SELECT n.id, n.digest, n.body
FROM (SELECT nextval('shape_ids')::integer AS id, digest, body
      FROM unnest($1::text[], $2::bytea[]) AS u (digest, body) OFFSET 0) AS n
ORDER BY n.digest COLLATE "C"
ON CONFLICT (digest) DO NOTHING

-- name: shapes_after
-- What a cache does not know yet.
SELECT id, digest, body FROM shapes WHERE id > $1 ORDER BY id

-- name: queues
-- All of them; there are few.
SELECT name, weight, paused, max_running, max_per_worker, preempts, limit_id
FROM queues ORDER BY name

-- name: put_queue
-- New or changed.
INSERT INTO queues (name, weight, paused, max_running, max_per_worker, preempts, limit_id)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight, paused = excluded.paused,
    max_running = excluded.max_running, max_per_worker = excluded.max_per_worker,
    preempts = excluded.preempts, limit_id = excluded.limit_id

-- name: meta
-- All settings; there are few.
SELECT name, value FROM meta ORDER BY name

-- name: set_meta
-- New or changed.
INSERT INTO meta (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: append_events
-- The shared lock is taken before the first number is drawn: the tailer passes a gap only
-- when nobody who may still fill it is left. The transaction's number comes back for the
-- case that the answer to COMMIT is lost.
WITH gate AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(1464421956, 1)
), written AS (
    INSERT INTO events (at, kind, job, attempt, worker, incarnation, "from", "to", reason,
                        actor, data)
    SELECT coalesce(u.at, $12), coalesce(u.kind, $13), u.job, coalesce(u.attempt, $14),
           nullif(coalesce(u.worker, $15), 0), nullif(coalesce(u.incarnation, $16), 0),
           coalesce(u."from", $17), coalesce(u."to", $18), coalesce(u.reason, $19),
           coalesce(u.actor, $20), coalesce(u.data, $21)
    FROM gate, unnest($1::text::bigint[], $2::text::bigint[], $3::text::smallint[],
                      $4::text::integer[], $5::text::bigint[], $6::text::bigint[],
                      $7::text::smallint[], $8::text::smallint[], $9::text[], $10::text[],
                      $11::text[])
               AS u (job, at, kind, attempt, worker, incarnation, "from", "to", reason, actor,
                     data)
)
SELECT pg_current_xact_id()::text

-- name: append_moves
-- As `append_events`, for transitions (kind 1) without reason, actor and data.
WITH gate AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(1464421956, 1)
), written AS (
    INSERT INTO events (at, kind, job, attempt, worker, incarnation, "from", "to", reason, actor,
                        data)
    SELECT $8::bigint, 1, u.job, coalesce(u.attempt, $5), nullif($9::bigint, 0),
           nullif($10::bigint, 0), coalesce(u."from", $6), coalesce(u."to", $7), $11::text,
           $12::text, $13::text
    FROM gate, unnest($1::text::bigint[], $2::text::integer[], $3::text::smallint[],
                      $4::text::smallint[]) AS u (job, attempt, "from", "to")
)
SELECT pg_current_xact_id()::text

-- name: enter
-- Jobs that are ready at once go into both tables by one pass over the columns.
WITH entered AS (
    INSERT INTO jobs (id, spec, shape, workflow, flags, rank, base, adjustment, age_from,
                      created_at, limit_id, timeout_ms, idle_ms, supersedes)
    SELECT u.id, u.spec, coalesce(u.shape, $15), nullif(coalesce(u.workflow, $16), 0),
           coalesce(u.flags, $17), coalesce(u.rank, $18), coalesce(u.base, $19),
           coalesce(u.adjustment, $20), coalesce(u.age_from, $21), coalesce(u.created_at, $22),
           nullif(coalesce(u.limit_id, $23), 0), nullif(coalesce(u.timeout_ms, $24), 0),
           nullif(coalesce(u.idle_ms, $25), 0), nullif(coalesce(u.supersedes, $26), 0)
    FROM unnest($1::text::bigint[], $2::bytea[], $3::text::integer[], $4::text::bigint[],
                $5::text::integer[], $6::text::bigint[], $7::text::integer[], $8::text::integer[],
                $9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[],
                $13::text::bigint[], $14::text::bigint[])
         AS u (id, spec, shape, workflow, flags, rank, base, adjustment, age_from, created_at,
               limit_id, timeout_ms, idle_ms, supersedes)
    RETURNING shape, rank, id, workflow, limit_id
)
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id)
SELECT shape, rank, id, 0, workflow, limit_id FROM entered

-- name: lock_untied_jobs
-- All are locked, in order; only those in a workflow are told, which are few.
WITH locked AS MATERIALIZED (
    SELECT id, workflow FROM jobs WHERE id = ANY ($1::text::bigint[])
    ORDER BY id FOR NO KEY UPDATE
)
SELECT id FROM locked WHERE workflow IS NOT NULL

-- name: complete
-- `lock_untied_jobs` holds the rows of `jobs`, and this statement began after it: what it
-- sees of leases and dependents stays true. State 4 is running, 8 completed. The sum keeps the
-- planner from the index on the worker, by which each job would meet all of its worker's.
WITH gone AS MATERIALIZED (
    DELETE FROM leases l
    USING unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                 $4::text::bigint[], $5::text::integer[], $6::bytea[])
          AS u (job, attempt, worker, incarnation, exit_code, result)
    WHERE l.job = u.job AND l.attempt = coalesce(u.attempt, $7)
      AND l.worker + 0 = coalesce(u.worker, $8) AND l.incarnation = coalesce(u.incarnation, $9)
      AND l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL
      AND NOT EXISTS (SELECT FROM dependents d WHERE d.job = u.job AND d.chunk = 0)
      AND NOT EXISTS (SELECT FROM waits w WHERE w.job = u.job)
    RETURNING l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at,
              coalesce(u.exit_code, $10) AS exit_code, coalesce(u.result, $11) AS result
), ended AS (
    UPDATE jobs j SET state = {state.completed}, attempt = g.attempt, worker = g.worker,
        incarnation = g.incarnation, assigned_at = g.assigned_at, started_at = g.started_at,
        finished_at = $12, failure = {failure.none}, exit_code = g.exit_code, message = NULL,
        reason = NULL, result = g.result
    FROM gone g WHERE j.id = g.job
)
SELECT job FROM gone

-- name: complete_tied
-- `hold_jobs` holds the rows of `jobs`, and this statement began after it. All of these
-- attempts or none: $10 is how many they are.
WITH held AS MATERIALIZED (
    SELECT l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at,
           coalesce(u.exit_code, $11) AS exit_code, coalesce(u.result, $12) AS result
    FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
                $4::text::bigint[], $5::text::integer[], $6::bytea[])
         AS u (job, attempt, worker, incarnation, exit_code, result)
    JOIN leases l ON l.job = u.job AND l.attempt = coalesce(u.attempt, $7)
      AND l.worker + 0 = coalesce(u.worker, $8) AND l.incarnation = coalesce(u.incarnation, $9)
    WHERE l.state = {state.running} AND l.limit_id IS NULL AND l.queue_limit IS NULL
      AND NOT EXISTS (SELECT FROM waits w WHERE w.job = u.job)
), gone AS MATERIALIZED (
    DELETE FROM leases l USING held h
    WHERE l.job = h.job AND (SELECT count(*) FROM held) = $10::bigint
    RETURNING h.*
)
UPDATE jobs j SET state = {state.completed}, attempt = g.attempt, worker = g.worker,
    incarnation = g.incarnation, assigned_at = g.assigned_at, started_at = g.started_at,
    finished_at = $13, failure = {failure.none}, exit_code = g.exit_code, message = NULL,
    reason = NULL, result = g.result
FROM gone g WHERE j.id = g.job
RETURNING j.id, j.shape, coalesce(j.workflow, 0)

-- name: end_blocked
-- Jobs that wait end, but for one that keeps a wait (2) while it runs. The lock comes first and
-- in order; who goes on to `ready` meanwhile is met by `end_queued`, which begins afterwards.
WITH locked AS MATERIALIZED (
    SELECT job FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE
), gone AS (
    DELETE FROM waits w USING locked l WHERE w.job = l.job
        AND w.manual <> {manual.kept_while_running} RETURNING w.job
), ended AS (
    UPDATE jobs j SET state = $2::smallint, worker = 0, incarnation = 0, assigned_at = 0,
        started_at = 0, finished_at = $3::bigint, failure = {failure.none}, exit_code = NULL,
        message = NULL, reason = $4::text, result = NULL
    FROM gone g WHERE j.id = g.job
    RETURNING j.id, j.shape, j.workflow, j.limit_id, j.flags, j.attempt
), listed AS (
    INSERT INTO bad_ends (job, state) SELECT id, $2::smallint FROM ended WHERE $2::smallint > {state.completed}
    ON CONFLICT (job) DO UPDATE SET state = excluded.state
)
SELECT id, {state.blocked}, shape, coalesce(workflow, 0), coalesce(limit_id, 0), flags, attempt
FROM ended

-- name: end_queued
-- The same for jobs that are ready; a claim in force is waited for, and what it took is left.
WITH locked AS MATERIALIZED (
    SELECT r.shape, r.rank, r.job
    FROM jobs j JOIN ready r ON r.shape = j.shape AND r.rank = j.rank AND r.job = j.id
    WHERE j.id = ANY ($1::text::bigint[]) ORDER BY r.job FOR UPDATE OF r
), gone AS (
    DELETE FROM ready r USING locked l
    WHERE r.shape = l.shape AND r.rank = l.rank AND r.job = l.job RETURNING r.job
), ended AS (
    UPDATE jobs j SET state = $2::smallint, worker = 0, incarnation = 0, assigned_at = 0,
        started_at = 0, finished_at = $3::bigint, failure = {failure.none}, exit_code = NULL,
        message = NULL, reason = $4::text, result = NULL
    FROM gone g WHERE j.id = g.job
    RETURNING j.id, j.shape, j.workflow, j.limit_id, j.flags, j.attempt
), listed AS (
    INSERT INTO bad_ends (job, state) SELECT id, $2::smallint FROM ended WHERE $2::smallint > {state.completed}
    ON CONFLICT (job) DO UPDATE SET state = excluded.state
)
SELECT id, {state.queued}, shape, coalesce(workflow, 0), coalesce(limit_id, 0), flags, attempt
FROM ended

-- name: read_events
-- From a rising bound.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from",
       "to", reason, actor, data
FROM events WHERE seq > $1 ORDER BY seq LIMIT $2

-- name: events_of_job
-- The history of one job.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from",
       "to", reason, actor, data
FROM events WHERE job = $1 ORDER BY seq

-- name: event_writers
-- Who may still fill a gap: the transactions that hold the shared lock of `append_events`.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND classid = 1464421956 AND objid = 1 AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: bump_counters
-- Into the shard of this connection, which no other transaction writes to.
INSERT INTO counters (server, slot, name, value)
SELECT $1, $2, u.name, u.delta FROM unnest($3::text[], $4::text::bigint[]) AS u (name, delta)
ON CONFLICT (server, slot, name) DO UPDATE SET value = counters.value + excluded.value

-- name: counters
-- The sum over all shards.
SELECT name, sum(value)::bigint FROM counters GROUP BY name ORDER BY name

-- name: all_jobs
-- For comparing and verifying.
SELECT id, shape, coalesce(workflow, 0), state, flags, rank, base, adjustment, age_from,
       created_at, coalesce(limit_id, 0), coalesce(timeout_ms, 0), coalesce(idle_ms, 0),
       coalesce(supersedes, 0), coalesce(superseded_by, 0), attempt, failed, lost, returned,
       coalesce(worker, 0), coalesce(incarnation, 0), excluded,
       coalesce(assigned_at, 0), coalesce(started_at, 0), coalesce(finished_at, 0),
       coalesce(failure, 0), exit_code, message, reason, result, spec
FROM jobs ORDER BY id

-- name: all_waits
-- For comparing and verifying.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, coalesce(workflow, 0),
       coalesce(limit_id, 0), excluded
FROM waits ORDER BY job

-- name: all_due
-- For comparing and verifying.
SELECT at, job, state, shape, rank, attempt, coalesce(workflow, 0), coalesce(limit_id, 0),
       excluded
FROM due ORDER BY at, job

-- name: all_parked
-- For comparing and verifying.
SELECT shape, rank, job, attempt, coalesce(workflow, 0), limit_id, excluded
FROM parked ORDER BY limit_id, shape, rank, job

-- name: all_ready
-- For comparing and verifying.
SELECT shape, rank, job, attempt, coalesce(workflow, 0), coalesce(limit_id, 0), excluded
FROM ready ORDER BY shape, rank, job

-- name: all_leases
-- For comparing and verifying.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, coalesce(timeout_ms, 0), coalesce(idle_ms, 0), coalesce(limit_id, 0), reason,
       coalesce(queue_limit, 0)
FROM leases ORDER BY job

-- name: all_attempts
-- For comparing and verifying.
SELECT job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
       started_at, finished_at
FROM attempts ORDER BY job, number

-- name: all_dependents
-- For comparing and verifying.
SELECT job, chunk, edges FROM dependents ORDER BY job, chunk

-- name: all_limits
-- For comparing and verifying.
SELECT id, namespace, key, max, leased FROM limits ORDER BY id

-- name: all_keys
-- For comparing and verifying.
SELECT namespace, key, job, digest, spans FROM keys ORDER BY namespace, key

-- name: all_workflows
-- For comparing and verifying.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows ORDER BY id

-- name: all_cascades
-- For comparing and verifying.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id

-- name: notify
-- After COMMIT, as a statement of its own: inside, it would hold a lock that all notifiers
-- share until the commit is on disk.
SELECT pg_notify('windlass', payload) FROM unnest($1::text[]) AS payload

-- name: inject_clock
-- Tests only: the time that all servers on this database see.
WITH gone AS (DELETE FROM injected_clock) INSERT INTO injected_clock VALUES ($1)

-- name: use_injected_clock
-- Replacing the function instead of asking a flag: the real clock pays nothing for it.
CREATE OR REPLACE FUNCTION windlass_now() RETURNS bigint LANGUAGE sql VOLATILE
AS $$SELECT at FROM injected_clock$$

-- name: create_schema
-- All tables live in a schema of their own, beside the user's.
CREATE SCHEMA IF NOT EXISTS windlass

-- name: create_migrations
-- Which versions of the schema were applied.
CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, name text NOT NULL)

-- name: lock_migrations
-- Two upgrades at once: the second waits and finds nothing to do.
SELECT pg_advisory_xact_lock(1464421956, 2)

-- name: has_migrations
-- Whether this database was ever prepared.
SELECT to_regclass('windlass.migrations') IS NOT NULL

-- name: functions_digest
-- Which functions were applied last: their digest is the comment on this table.
SELECT obj_description('windlass.migrations'::regclass, 'pg_class')

-- name: note_functions
-- In the same transaction as the functions themselves.
COMMENT ON TABLE migrations IS 'DIGEST'

-- name: schema_version
-- The newest version that was applied.
SELECT coalesce(max(number), 0) FROM migrations

-- name: note_migration
-- In the same transaction as the migration itself.
INSERT INTO migrations (number, name) VALUES ($1, $2)

-- name: insert_token
-- The id is drawn here.
INSERT INTO tokens (name, digest, role, namespaces, worker, created_at, expires_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id

-- name: token_by_digest
-- By the unique digest, once for each request.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at
FROM tokens WHERE digest = $1

-- name: all_tokens
-- All of them; there are few.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at
FROM tokens ORDER BY id

-- name: revoke_token
-- Of two at once the second waits, and then finds it done.
UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0 RETURNING id

-- name: insert_code
-- The columns of Code.
INSERT INTO codes (digest, created_at, expires_at, used_at) VALUES ($1, $2, $3, $4)

-- name: use_code
-- Of two at once the second waits, and then finds it used.
UPDATE codes SET used_at = $2 WHERE digest = $1 AND used_at = 0 AND expires_at > $2
RETURNING digest

-- name: all_codes
-- For comparing and verifying.
SELECT digest, created_at, expires_at, used_at FROM codes ORDER BY digest

-- name: log
-- By primary key.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs WHERE job = $1 AND attempt = $2

-- name: put_log
-- New or changed; the lease is locked, so nobody else writes it.
INSERT INTO logs (job, attempt, state, bytes, gap_from, gap_to) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (job, attempt) DO UPDATE SET state = excluded.state, bytes = excluded.bytes,
    gap_from = excluded.gap_from, gap_to = excluded.gap_to

-- name: logs_of_jobs
-- Ascending by attempt within each job.
SELECT job, attempt, state, bytes, gap_from, gap_to
FROM logs WHERE job = ANY ($1::text::bigint[]) ORDER BY job, attempt

-- name: streaming_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.streaming} AND job > $1 ORDER BY job, attempt LIMIT $2

-- name: all_logs
-- For comparing and verifying.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs ORDER BY job, attempt

-- name: put_artifacts
-- Of a name that stands twice in one call the last one counts.
INSERT INTO artifacts (job, attempt, name, sha256, size, content_type)
SELECT DISTINCT ON (u.job, u.attempt, u.name COLLATE "C")
       u.job, u.attempt, u.name, u.sha256, u.size, u.content_type
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text[], $4::text[],
            $5::text::bigint[], $6::text[])
     WITH ORDINALITY AS u (job, attempt, name, sha256, size, content_type, place)
ORDER BY u.job, u.attempt, u.name COLLATE "C", u.place DESC
ON CONFLICT (job, attempt, name) DO UPDATE SET sha256 = excluded.sha256,
    size = excluded.size, content_type = excluded.content_type

-- name: artifacts_of_jobs
-- Ascending by attempt and name within each job.
SELECT job, attempt, name, sha256, size, content_type
FROM artifacts WHERE job = ANY ($1::text::bigint[]) ORDER BY job, attempt, name

-- name: all_artifacts
-- For comparing and verifying.
SELECT job, attempt, name, sha256, size, content_type FROM artifacts
ORDER BY job, attempt, name

-- name: put_name
-- New or changed.
INSERT INTO names (namespace, name, job, artifact, sha256, set_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (namespace, name) DO UPDATE SET job = excluded.job, artifact = excluded.artifact,
    sha256 = excluded.sha256, set_at = excluded.set_at

-- name: names
-- All, or those of one namespace.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE $1::text IS NULL OR namespace = $1 ORDER BY namespace, name

-- name: lookup_names
-- By primary key.
SELECT n.namespace, n.name, n.job, n.artifact, n.sha256, n.set_at
FROM unnest($2::text[]) AS u (name) JOIN names n ON n.namespace = $1 AND n.name = u.name

-- name: referenced
-- By both indexes on digests.
SELECT u.sha256 FROM unnest($1::text[]) AS u (sha256)
WHERE EXISTS (SELECT FROM artifacts a WHERE a.sha256 = u.sha256)
   OR EXISTS (SELECT FROM names n WHERE n.sha256 = u.sha256)

-- name: put_progress
-- The newest one replaces the others.
INSERT INTO progress (job, attempt, value, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, value = excluded.value,
    at = excluded.at

-- name: progress_of_jobs
-- By primary key.
SELECT job, attempt, value, at FROM progress
WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: all_progress
-- For comparing and verifying.
SELECT job, attempt, value, at FROM progress ORDER BY job

-- name: put_dynamic
-- The newest one replaces the others.
INSERT INTO dynamic (job, attempt, body)
SELECT u.job, u.attempt, u.body
FROM unnest($1::text::bigint[], $2::text::integer[], $3::bytea[]) AS u (job, attempt, body)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, body = excluded.body

-- name: dynamic_of_jobs
-- By primary key.
SELECT job, attempt, body FROM dynamic WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: all_dynamic
-- For comparing and verifying.
SELECT job, attempt, body FROM dynamic ORDER BY job

-- name: scan_jobs
-- A bounded walk back from an id: whether the rows match is seen by the reader.
SELECT id, shape, state FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2

-- name: scan_leases
-- The newest jobs under a lease.
SELECT l.job, j.shape, 0
FROM (SELECT job FROM leases WHERE job < $1 ORDER BY job DESC LIMIT $2) AS l
JOIN jobs j ON j.id = l.job ORDER BY l.job DESC

-- name: scan_waits
-- The newest blocked jobs.
SELECT job, shape, 0 FROM waits WHERE job < $1 ORDER BY job DESC LIMIT $2

-- name: scan_due
-- The newest jobs that back off, by the partial index.
SELECT job, shape, 0 FROM due WHERE state = {state.retrying} AND job < $1 ORDER BY job DESC LIMIT $2

-- name: scan_bad
-- The newest jobs that ended badly.
SELECT b.job, j.shape, b.state
FROM (SELECT job, state FROM bad_ends WHERE job < $1 ORDER BY job DESC LIMIT $2) AS b
JOIN jobs j ON j.id = b.job ORDER BY b.job DESC

-- name: scan_workflow
-- The newest jobs of one workflow, by the partial index.
SELECT id, shape, state FROM jobs WHERE workflow = $3 AND id < $1 ORDER BY id DESC LIMIT $2

-- name: light_jobs
-- What a list needs to know of a job before it is read.
SELECT id, shape, state FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id DESC

-- name: queued_jobs
-- All of them up to a bound, which is how a list finds out whether they are few.
SELECT job FROM ready
UNION ALL SELECT job FROM parked
UNION ALL SELECT job FROM due WHERE state = {state.queued}
LIMIT $1

-- name: jobs_of_key
-- By primary key.
SELECT k.job FROM unnest($1::text[]) AS u (namespace)
JOIN keys k ON k.namespace = u.namespace AND k.key = $2

-- name: job_records
-- The columns of JobRecord, as in `all_jobs`.
SELECT id, shape, coalesce(workflow, 0), state, flags, rank, base, adjustment, age_from,
       created_at, coalesce(limit_id, 0), coalesce(timeout_ms, 0), coalesce(idle_ms, 0),
       coalesce(supersedes, 0), coalesce(superseded_by, 0), attempt, failed, lost, returned,
       coalesce(worker, 0), coalesce(incarnation, 0), excluded,
       coalesce(assigned_at, 0), coalesce(started_at, 0), coalesce(finished_at, 0),
       coalesce(failure, 0), exit_code, message, reason, result, spec
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id

-- name: standings
-- Blocked, planned and backing-off jobs; the other open ones are queued or leased.
SELECT job, {state.blocked}, not_before FROM waits WHERE job = ANY ($1::text::bigint[])
UNION ALL
SELECT job, state, at FROM due WHERE job = ANY ($1::text::bigint[])

-- name: worker_names
-- By primary key.
SELECT id, name FROM workers WHERE id = ANY ($1::text::bigint[])

-- name: lease_counts
-- Along the index on the worker.
SELECT worker, count(*) FROM leases GROUP BY worker

-- name: try_retention
-- One server at a time removes things; the others come back later.
SELECT pg_try_advisory_xact_lock(1464421956, 3)

-- name: jobs_behind
-- A bounded walk from an id: ids rise with time.
SELECT id, shape, coalesce(workflow, 0), created_at, state, coalesce(finished_at, 0)
FROM jobs WHERE id > $1 ORDER BY id LIMIT $2

-- name: remove_jobs
-- `lock_jobs` holds these rows, so nothing new can hang on them.
WITH gone AS MATERIALIZED (
    SELECT unnest($1::text::bigint[]) AS job
), attempts_gone AS (
    DELETE FROM attempts t USING gone g WHERE t.job = g.job
), dependents_gone AS (
    DELETE FROM dependents t USING gone g WHERE t.job = g.job
), keys_gone AS (
    DELETE FROM keys t USING gone g WHERE t.job = g.job
), logs_gone AS (
    DELETE FROM logs t USING gone g WHERE t.job = g.job
), artifacts_gone AS (
    DELETE FROM artifacts t USING gone g WHERE t.job = g.job
), progress_gone AS (
    DELETE FROM progress t USING gone g WHERE t.job = g.job
), dynamic_gone AS (
    DELETE FROM dynamic t USING gone g WHERE t.job = g.job
), usage_gone AS (
    DELETE FROM usage t USING gone g WHERE t.job = g.job
), bad_ends_gone AS (
    DELETE FROM bad_ends t USING gone g WHERE t.job = g.job
)
DELETE FROM jobs t USING gone g WHERE t.id = g.job

-- name: remove_workflows
-- Those without a job; the index on the workflow tells.
WITH gone AS (
    DELETE FROM workflows w USING unnest($1::text::bigint[]) AS u (id)
    WHERE w.id = u.id AND NOT EXISTS (SELECT FROM jobs j WHERE j.workflow = w.id)
    RETURNING w.id
), about_gone AS (
    DELETE FROM workflow_about a USING gone g WHERE a.workflow = g.id
), keys_gone AS (
    DELETE FROM workflow_keys k USING gone g WHERE k.workflow = g.id
)
DELETE FROM baseline b USING gone g WHERE b.kind = {baseline.workflow} AND b.id = g.id

-- name: baseline
-- By primary key.
SELECT kind, id, body FROM baseline WHERE kind = $1 AND id = ANY ($2::text::bigint[]) ORDER BY id

-- name: put_baseline
-- New or changed.
INSERT INTO baseline (kind, id, body)
SELECT u.kind, u.id, u.body
FROM unnest($1::text::smallint[], $2::text::bigint[], $3::text[]) AS u (kind, id, body)
ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body

-- name: drop_baseline
-- By primary key.
DELETE FROM baseline WHERE kind = $1 AND id = ANY ($2::text::bigint[])

-- name: all_baseline
-- For comparing and verifying.
SELECT kind, id, body FROM baseline ORDER BY kind, id

-- name: trim_events
-- The newest stays, as on the other stores.
DELETE FROM events WHERE seq <= $1 AND seq < (SELECT max(seq) FROM events)

-- name: newest_event
-- Where to begin to follow what comes.
SELECT coalesce(max(seq), 0) FROM events

-- name: submit_plain
-- One round trip, see functions/.
SELECT moment, ids
FROM submit_plain($1, $2, $3, $4, $5, $6::text::integer[], $7::text::integer[],
                  $8::text::bigint[], $9::text::integer[], $10::text::bigint[],
                  $11::text::bigint[], $12, $13, $14, $15, $16, $17, $18,
                  $19::text::bigint[], $20, $21, $22, $23::text::integer[],
                  $24::text::integer[], $25, $26, $27::text::integer[], $28::text::bigint[],
                  $29::text::integer[], $30::text::integer[])

-- name: sync_plain
-- One round trip, see functions/.
SELECT moment, asked, looked, given_jobs, given_attempts, given_leases, timeouts, idles, specs,
       cursor_ranks, cursor_jobs, left_shapes, left_ranks, left_jobs
FROM sync_plain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18::text::bigint[], $19::text::integer[], $20::text::bigint[],
                $21::text::bigint[], $22::text::integer[], $23, $24::text::bigint[],
                $25::text::integer[], $26::text::integer[], $27, $28, $29, $30)

-- name: sync_gated
-- One round trip, see functions/.
SELECT moment, asked, looked, given_jobs, given_attempts, given_leases, timeouts, idles, specs,
       cursor_ranks, cursor_jobs, left_shapes, left_ranks, left_jobs, given_shapes,
       freed
FROM sync_gated($1::text::integer[], $2::text::bigint[], $3, $4, $5, $6, $7, $8, $9, $10, $11,
                $12, $13, $14, $15, $16, $17, $18, $19,
                $20::text::bigint[], $21::text::integer[], $22::text::bigint[],
                $23::text::bigint[], $24::text::integer[], $25, $26::text::bigint[],
                $27::text::integer[], $28::text::integer[], $29, $30, $31, $32)

-- name: session_start
-- A process number may be used again; together with this it is one session's only.
SELECT (extract(epoch FROM backend_start) * 1000000)::bigint FROM pg_stat_activity
WHERE pid = pg_backend_pid()

-- name: end_session
-- End a session whose client is gone, and wait until it is: then what it did is certain.
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2

-- name: jobs_of_call
-- The jobs of a hot submit: the transaction that noted the call wrote their first events. They
-- are younger than $4.
SELECT e.at, e.job FROM events e
WHERE e.job > $4 AND e.kind = {event.job} AND e."from" = {state.new} AND e.xmin = (
    SELECT c.xmin FROM counters c WHERE c.server = $1 AND c.slot = $2 AND c.call = $3 LIMIT 1
)
ORDER BY e.job
