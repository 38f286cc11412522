-- Steps of jobs, and signals: the statements that only SQLite runs.

-- name: steps_of_jobs
-- Without the values, which may be large.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, NULL
FROM steps WHERE job IN carray(?) ORDER BY job, asked_at, key;

-- name: asked_questions
-- Only questions of jobs that are waiting for the answer now.
SELECT s.job, s.key, s.kind, s.state, s.attempt, s.asked_at, s.until, s.ended_at, s.namespace, s.name,
       s.signal, s.actor, s.body, s.value
FROM steps AS s INDEXED BY steps_asked
CROSS JOIN due AS d ON d.job = s.job AND d.attempt = s.attempt AND d.state = {state.suspended}
WHERE s.kind = {step.question} AND s.state = {step_state.pending} AND s.job > ?
ORDER BY s.job, s.key LIMIT ?;

-- name: joining_steps
-- Every two seconds, by the partial index.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps INDEXED BY steps_joining
WHERE kind = {step.jobs} AND state = {step_state.pending} AND job > ? ORDER BY job, key LIMIT ?;

-- name: open_signals
-- By the partial index, which is nearly always empty.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals INDEXED BY signals_open
WHERE is_open = 1 AND id > 0 ORDER BY id LIMIT ?;

-- name: waiting_steps
-- By the partial index.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps INDEXED BY steps_waiting
WHERE kind = {step.signal} AND state = {step_state.pending} AND namespace = ?1 AND name = ?2
    AND signal < ?3 AND (until IS NULL OR until >= ?4)
ORDER BY job, key LIMIT ?5;
