-- Steps of jobs, and signals: the statements that only PostgreSQL runs.

-- name: steps_of_jobs
-- Without the values, which may be large.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, NULL::bytea
FROM steps WHERE job = ANY ($1::text::bigint[]) ORDER BY job, asked_at, key;

-- name: asked_questions
-- Only questions of jobs that are waiting for the answer now.
SELECT s.job, s.key, s.kind, s.state, s.attempt, s.asked_at, s.until, s.ended_at, s.namespace, s.name,
       s.signal, s.actor, s.body, s.value
FROM steps s
JOIN due d ON d.job = s.job AND d.attempt = s.attempt AND d.state = {state.suspended}
WHERE s.kind = {step.question} AND s.state = {step_state.pending} AND s.job > $1
ORDER BY s.job, s.key LIMIT $2;

-- name: joining_steps
-- Every two seconds, by the partial index.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE kind = {step.jobs} AND state = {step_state.pending} AND job > $1
ORDER BY job, key LIMIT $2;

-- name: open_signals
-- By the partial index, which is nearly always empty.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals WHERE is_open = 1 ORDER BY id LIMIT $1;

-- name: lock_name
-- Senders, and jobs that start to wait, take turns for each name.
SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(29) || $2, 1464421956));

-- name: waiting_steps
-- By the partial index.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps
WHERE kind = {step.signal} AND state = {step_state.pending} AND namespace = $1 AND name = $2
    AND signal < $3 AND (until IS NULL OR until >= $4)
ORDER BY job, key LIMIT $5;
