-- The places where open jobs wait: waits, due, parked, ready: the statements that only PostgreSQL runs.

-- name: hold_waits
-- In the order in which everybody locks.
SELECT job FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE;

-- name: add_ready
-- The busiest place: seven narrow columns and one index.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT coalesce(u.shape, $8), coalesce(u.rank, $9), u.job, coalesce(u.attempt, $10),
       coalesce(u.workflow, $11), coalesce(u.limit_id, $12),
       coalesce(u.excluded, $13)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded);

-- name: add_parked
-- As `add_ready`, under a limit.
INSERT INTO parked (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT coalesce(u.shape, $8), coalesce(u.rank, $9), u.job, coalesce(u.attempt, $10),
       coalesce(u.workflow, $11), coalesce(u.limit_id, $12),
       coalesce(u.excluded, $13)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded);

-- name: add_waits
-- As `add_ready`, with what the job waits for.
INSERT INTO waits (shape, rank, job, attempt, workflow, limit_id, excluded, unmet, manual,
                   not_before, age_from)
SELECT coalesce(u.shape, $12), coalesce(u.rank, $13), u.job, coalesce(u.attempt, $14),
       coalesce(u.workflow, $15), coalesce(u.limit_id, $16),
       coalesce(u.excluded, $17), coalesce(u.unmet, $18), coalesce(u.manual, $19),
       coalesce(u.not_before, $20), coalesce(u.age_from, $21)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[],
            $8::text::integer[], $9::text::smallint[], $10::text::bigint[],
            $11::text::bigint[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded, unmet, manual, not_before,
           age_from);

-- name: add_due
-- As `add_ready`, with the time at which the job may start.
INSERT INTO due (shape, rank, job, attempt, workflow, limit_id, excluded, at, state)
SELECT coalesce(u.shape, $10), coalesce(u.rank, $11), u.job, coalesce(u.attempt, $12),
       coalesce(u.workflow, $13), coalesce(u.limit_id, $14),
       coalesce(u.excluded, $15), coalesce(u.at, $16), coalesce(u.state, $17)
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[],
            $4::text::integer[], $5::text::bigint[], $6::text::bigint[], $7::text[],
            $8::text::bigint[], $9::text::smallint[])
     AS u (job, shape, rank, attempt, workflow, limit_id, excluded, at, state);

-- name: meet
-- First locks, in order. Changes by other transactions meanwhile are seen by
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
              w.age_from, w.shape, w.rank, w.attempt, w.workflow, w.limit_id,
              w.excluded
), lowered AS (
    UPDATE waits w SET unmet = l.left_over, manual = CASE WHEN $3 THEN {manual.no} ELSE w.manual END
    FROM locked l WHERE w.job = l.job AND l.left_over > 0
)
SELECT * FROM freed ORDER BY job;

-- name: lock_waits
-- Lock and read.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow,
       limit_id, excluded
FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE;

-- name: read_waits
-- Without locks, for reads.
SELECT job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow,
       limit_id, excluded
FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job;

-- name: take_waits
-- First locks, in order.
WITH locked AS MATERIALIZED (
    SELECT job FROM waits WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE
), taken AS (
    DELETE FROM waits w USING locked l WHERE w.job = l.job
    RETURNING w.job, w.unmet, w.manual, w.not_before, w.age_from, w.shape, w.rank, w.attempt,
              w.workflow, w.limit_id, w.excluded
)
SELECT * FROM taken ORDER BY job;

-- name: take_due
-- First locks, in order.
WITH locked AS MATERIALIZED (
    SELECT job FROM due WHERE job = ANY ($1::text::bigint[]) ORDER BY job FOR UPDATE
), taken AS (
    DELETE FROM due d USING locked l WHERE d.job = l.job
    RETURNING d.at, d.job, d.state, d.shape, d.rank, d.attempt, d.workflow,
              d.limit_id, d.excluded
)
SELECT * FROM taken ORDER BY job;

-- name: take_parked
-- First locks, in order.
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
    RETURNING p.shape, p.rank, p.job, p.attempt, p.workflow, p.limit_id,
              p.excluded
)
SELECT * FROM taken ORDER BY job;

-- name: take_ready
-- First locks, in order; waits until a running claim commits or gives up.
WITH locked AS MATERIALIZED (
    SELECT r.shape, r.rank, r.job
    FROM unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[])
         AS u (job, shape, rank)
    JOIN ready r ON r.shape = u.shape AND r.rank = u.rank AND r.job = u.job
    ORDER BY r.job FOR UPDATE OF r
), taken AS (
    DELETE FROM ready r USING locked l
    WHERE r.shape = l.shape AND r.rank = l.rank AND r.job = l.job
    RETURNING r.shape, r.rank, r.job, r.attempt, r.workflow,
              r.limit_id, r.excluded
)
SELECT * FROM taken ORDER BY job;

-- name: pull_due
-- Several servers pull concurrently; none waits for another.
WITH picked AS MATERIALIZED (
    SELECT job FROM due WHERE at <= $1 ORDER BY at, job LIMIT $2 FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM due d USING picked p WHERE d.job = p.job
    RETURNING d.at, d.job, d.state, d.shape, d.rank, d.attempt, d.workflow,
              d.limit_id, d.excluded
)
SELECT * FROM taken ORDER BY at, job;

-- name: peek
-- Each probe starts at its own bound in the index, so that it meets no dead entries below,
-- and its cost does not grow with the queue.
SELECT r.shape, r.rank, r.job, r.attempt, r.workflow, r.limit_id,
       r.excluded
FROM unnest($1::text::integer[], $2::text::bigint[], $3::text::bigint[],
            $4::text::integer[]) AS p (shape, rank, job, count)
CROSS JOIN LATERAL (
    SELECT * FROM ready
    WHERE shape = p.shape AND (rank, job) >= (p.rank, p.job)
    ORDER BY rank, job LIMIT p.count FOR UPDATE SKIP LOCKED
) AS r;

-- name: read_ready
-- Without locks, for reads.
SELECT r.shape, r.rank, r.job, r.attempt, r.workflow, r.limit_id,
       r.excluded
FROM unnest($1::text::integer[], $2::text::bigint[], $3::text::bigint[],
            $4::text::integer[]) AS p (shape, rank, job, count)
CROSS JOIN LATERAL (
    SELECT * FROM ready
    WHERE shape = p.shape AND (rank, job) >= (p.rank, p.job)
    ORDER BY rank, job LIMIT p.count
) AS r;

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
SELECT shape, rank, job, attempt, workflow, limit_id, excluded FROM given;

-- name: heads
-- A loose index scan: one descent per shape, however many jobs it has.
WITH RECURSIVE heads AS (
    (SELECT shape, rank, job FROM ready ORDER BY shape, rank, job LIMIT 1)
    UNION ALL
    SELECT n.shape, n.rank, n.job FROM heads h CROSS JOIN LATERAL (
        SELECT shape, rank, job FROM ready WHERE shape > h.shape
        ORDER BY shape, rank, job LIMIT 1
    ) AS n
)
SELECT shape, rank, job FROM heads;

-- name: best_parked
-- A loose index scan over the limit's shapes. It skips rows that others hold: the
-- limit is locked, so waiting here could end in a deadlock.
WITH RECURSIVE found AS (
    (SELECT shape FROM parked WHERE limit_id = $1 ORDER BY shape LIMIT 1)
    UNION ALL
    SELECT n.shape FROM found f CROSS JOIN LATERAL (
        SELECT shape FROM parked WHERE limit_id = $1 AND shape > f.shape
        ORDER BY shape LIMIT 1
    ) AS n
)
SELECT p.shape, p.rank, p.job, p.attempt, p.workflow, p.limit_id, p.excluded
FROM found f CROSS JOIN LATERAL (
    SELECT * FROM parked WHERE limit_id = $1 AND shape = f.shape
    ORDER BY rank, job LIMIT $2 FOR UPDATE SKIP LOCKED
) AS p;

-- name: unpark
-- `best_parked` holds these rows.
DELETE FROM parked p
USING unnest($1::text::bigint[], $2::text::bigint[], $3::text::integer[],
             $4::text::bigint[]) AS u (job, limit_id, shape, rank)
WHERE p.limit_id = u.limit_id AND p.shape = u.shape AND p.rank = u.rank AND p.job = u.job;
