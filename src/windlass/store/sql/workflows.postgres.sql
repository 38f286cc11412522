-- Workflows and cascades: the statements that only PostgreSQL runs.

-- name: workflow_numbers
-- Rising numbers, many in one call.
SELECT coalesce(array_agg(nextval('workflow_ids')), '{}') FROM generate_series(1, $1);

-- name: insert_workflows
-- The counts arrive as JSON: arrays of arrays would be unnested to the ground.
INSERT INTO workflows (id, namespace, name, state, run, flags, created_at, finished_at, counts)
SELECT u.id, u.namespace, u.name, u.state, u.run, u.flags, u.created_at, u.finished_at,
       translate(u.counts, '[]', '{}')::integer[]
FROM unnest($1::text::bigint[], $2::text[], $3::text[], $4::text::smallint[],
            $5::text::integer[], $6::text::integer[], $7::text::bigint[], $8::text::bigint[],
            $9::text[])
     AS u (id, namespace, name, state, run, flags, created_at, finished_at, counts);

-- name: lock_workflows
-- Workflows are the last rows to be locked.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: read_workflows
-- Without locks, for reads.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id = ANY ($1::text::bigint[]) ORDER BY id;

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
SELECT * FROM bumped ORDER BY id;

-- name: set_workflow_states
-- First locks, in order.
WITH locked AS MATERIALIZED (
    SELECT w.id, u.state, u.run, u.finished_at
    FROM unnest($1::text::bigint[], $2::text::smallint[], $3::text::integer[],
                $4::text::bigint[]) AS u (id, state, run, finished_at)
    JOIN workflows w ON w.id = u.id ORDER BY w.id FOR NO KEY UPDATE OF w
)
UPDATE workflows w SET state = k.state, run = k.run, finished_at = k.finished_at
FROM locked k WHERE w.id = k.id;

-- name: add_cascades
-- Numbered in the order given: the oldest is worked on first.
INSERT INTO cascades (job, workflow, kind, cursor, reason)
SELECT u.job, u.workflow, u.kind, u.cursor, u.reason
FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::smallint[], $4::text::bigint[],
            $5::text[]) AS u (job, workflow, kind, cursor, reason);

-- name: jobs_of_workflow
-- Along the partial index from an id on.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded
FROM jobs WHERE workflow = $1 AND id > $2 ORDER BY workflow, id LIMIT $3;

-- name: last_job_of_workflow
-- The end of the partial index, which has the ids of a workflow's jobs in order.
SELECT coalesce(
    (SELECT id FROM jobs WHERE workflow = $1 ORDER BY workflow DESC, id DESC LIMIT 1), 0
);

-- name: open_jobs_of_workflow
-- Along the partial index from an id on.
SELECT id FROM jobs WHERE workflow = $1 AND id > $2 AND state IS NULL ORDER BY workflow, id LIMIT $3;

-- name: jobs_outside
-- By primary key.
SELECT id FROM jobs WHERE id = ANY ($2::text::bigint[]) AND workflow IS DISTINCT FROM $1
ORDER BY id;

-- name: unfinished_workflows
-- By the partial index: 1 to 3 are the states that are no ends.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE state < {workflow.completed} AND id > $1 ORDER BY id LIMIT $2;

-- name: recount_workflow
-- Each job by its end or its place (blocked if it stands nowhere), and whether it is forgiven.
SELECT CASE
           WHEN j.state IS NOT NULL THEN j.state
           WHEN l.state IS NOT NULL THEN l.state
           WHEN d.state IS NOT NULL THEN d.state
           WHEN r.job IS NOT NULL OR p.job IS NOT NULL THEN {state.queued}
           ELSE {state.blocked}
       END AS standing,
       coalesce(j.state > {state.completed} AND j.state <> {state.skipped}
                AND j.flags & {flag.allow_failure} <> 0, false)
           AS forgiven,
       count(*)
FROM jobs j
LEFT JOIN leases l ON l.job = j.id
LEFT JOIN due d ON d.job = j.id
LEFT JOIN ready r ON r.shape = j.shape AND r.rank = j.rank AND r.job = j.id
LEFT JOIN parked p
    ON p.limit_id = j.limit_id AND p.shape = j.shape AND p.rank = j.rank AND p.job = j.id
WHERE j.workflow = $1 AND j.superseded_by IS NULL
GROUP BY standing, forgiven;
