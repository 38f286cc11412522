-- Removing old jobs and events: the statements that only PostgreSQL runs.

-- name: job_records
-- The columns of JobRecord, as in `all_jobs`.
SELECT id, shape, workflow, state, flags, rank, base, adjustment, age_from,
       created_at, limit_id, timeout_ms, idle_ms,
       supersedes, superseded_by, attempt, failed, lost, returned, handed_back,
       worker, incarnation, excluded,
       assigned_at, started_at, finished_at,
       coalesce(failure, 0), exit_code, message, reason, result, spec
FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id;

-- name: try_retention
-- One server at a time removes rows; the others try again later.
SELECT pg_try_advisory_xact_lock(1464421956, 3);

-- name: jobs_behind
-- Reads a bounded number of rows from an id on: ids rise with time.
SELECT id, shape, workflow, created_at, state, finished_at
FROM jobs WHERE id > $1 ORDER BY id LIMIT $2;

-- name: remove_jobs
-- `lock_jobs` holds these rows, so nothing can start to depend on them.
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
), steps_gone AS (
    DELETE FROM steps t USING gone g WHERE t.job = g.job
), bad_ends_gone AS (
    DELETE FROM bad_ends t USING gone g WHERE t.job = g.job
)
DELETE FROM jobs t USING gone g WHERE t.id = g.job;

-- name: remove_workflows
-- Workflows without a job, by the index on the workflow.
WITH gone AS (
    DELETE FROM workflows w USING unnest($1::text::bigint[]) AS u (id)
    WHERE w.id = u.id AND NOT EXISTS (SELECT FROM jobs j WHERE j.workflow = w.id)
    RETURNING w.id
), about_gone AS (
    DELETE FROM workflow_about a USING gone g WHERE a.workflow = g.id
), keys_gone AS (
    DELETE FROM workflow_keys k USING gone g WHERE k.workflow = g.id
)
DELETE FROM baseline b USING gone g WHERE b.kind = {baseline.workflow} AND b.id = g.id;

-- name: put_baseline
-- New or changed.
INSERT INTO baseline (kind, id, body)
SELECT u.kind, u.id, u.body
FROM unnest($1::text::smallint[], $2::text::bigint[], $3::text[]) AS u (kind, id, body)
ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;

-- name: forget_commits
-- Old marks, see functions/.
SELECT forget_commits();

-- name: trim_events
-- What is younger in the last row gets rows of its own. The newest stays, as on the other store.
WITH newest AS (
    SELECT max(seq) AS seq FROM events
), gone AS (
    DELETE FROM events WHERE seq <= $1 AND seq < (SELECT seq FROM newest)
    RETURNING coalesce(cardinality(jobs), 1) * CASE WHEN via IS NULL THEN 1 ELSE 2 END AS events
), cut AS (
    DELETE FROM events e WHERE e.seq = (
        SELECT seq FROM events WHERE seq > $1 OR seq = (SELECT seq FROM newest) ORDER BY seq LIMIT 1
    ) AND EXISTS (
        SELECT FROM each_event v
        WHERE v.row_seq = e.seq AND v.seq <= $1 AND v.seq < (SELECT seq FROM newest)
    )
    RETURNING e.seq
), kept AS (
    INSERT INTO events (seq, at, kind, job, attempt, worker, incarnation, "from", "to", reason,
                        actor, data)
    SELECT v.seq, v.at, v.kind, v.job, v.attempt, v.worker, v.incarnation, v."from", v."to",
           v.reason, v.actor, v.data
    FROM cut JOIN each_event v ON v.row_seq = cut.seq
    WHERE v.seq > $1 OR v.seq = (SELECT seq FROM newest)
)
SELECT (SELECT coalesce(sum(events), 0) FROM gone) + (
    SELECT count(*) FROM cut JOIN each_event v ON v.row_seq = cut.seq
    WHERE v.seq <= $1 AND v.seq < (SELECT seq FROM newest)
);
