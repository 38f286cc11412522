-- Steps of jobs, and signals.

-- name: find_step
-- By primary key.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE job = $1 AND key = $2

-- name: lock_step
-- By primary key; what ends the step meanwhile is waited for.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE job = $1 AND key = $2 FOR UPDATE

-- name: count_steps
-- By a range of the primary key.
SELECT count(*) FROM steps WHERE job = $1

-- name: steps_of_jobs
-- Without the values, which may be large.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, NULL::bytea
FROM steps WHERE job = ANY ($1::text::bigint[]) ORDER BY job, asked_at, key

-- name: asked_questions
-- Only those of jobs that wait for the answer now.
SELECT s.job, s.key, s.kind, s.state, s.attempt, s.asked_at, s.until, s.ended_at, s.namespace, s.name,
       s.signal, s.actor, s.body, s.value
FROM steps s
JOIN due d ON d.job = s.job AND d.attempt = s.attempt AND d.state = {state.suspended}
WHERE s.kind = {step.question} AND s.state = {step_state.pending} AND s.job > $1
ORDER BY s.job, s.key LIMIT $2

-- name: joining_steps
-- Every two seconds, by the partial index.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE kind = {step.jobs} AND state = {step_state.pending} AND job > $1
ORDER BY job, key LIMIT $2

-- name: next_signal
-- In the order of their numbers, by the index on the name.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals
WHERE namespace = $1 AND name = $2 AND id > $3 AND at >= $4 AND at <= $5
ORDER BY id LIMIT 1

-- name: signal_of_key
-- By its unique key.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals
WHERE namespace = $1 AND name = $2 AND key = $3

-- name: last_signal
-- By the index on the name.
SELECT coalesce(max(id), 0) FROM signals WHERE namespace = $1 AND name = $2

-- name: count_signals
-- No further than the bound.
SELECT count(*) FROM (SELECT FROM signals WHERE namespace = $1 LIMIT $2) AS kept

-- name: open_signals
-- By the partial index, which is nearly always empty.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals WHERE is_open = 1 ORDER BY id LIMIT $1

-- name: put_step
-- New or changed.
INSERT INTO steps (job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (job, key) DO UPDATE SET
    kind = excluded.kind,
    state = excluded.state,
    attempt = excluded.attempt,
    asked_at = excluded.asked_at,
    until = excluded.until,
    ended_at = excluded.ended_at,
    namespace = excluded.namespace,
    name = excluded.name,
    signal = excluded.signal,
    actor = excluded.actor,
    body = excluded.body,
    value = excluded.value

-- name: pending_steps
-- The lock waits for a signal that is just being sent.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE job = ANY ($1::text::bigint[]) AND state = {step_state.pending}
ORDER BY job, key FOR UPDATE

-- name: lock_name
-- Senders and those who begin to wait take turns for each name.
SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(29) || $2, 1464421956))

-- name: waiting_steps
-- By the partial index.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps
WHERE kind = {step.signal} AND state = {step_state.pending} AND namespace = $1 AND name = $2
    AND signal < $3 AND (until IS NULL OR until >= $4)
ORDER BY job, key LIMIT $5

-- name: insert_signal
-- The columns of SignalRow; the number is drawn here, while the name is locked.
INSERT INTO signals (id, namespace, name, key, at, is_open, actor, payload)
SELECT nextval('signal_ids'), $1, $2, $3, $4, $5, $6, $7
RETURNING id

-- name: close_signal
-- By primary key.
UPDATE signals SET is_open = 0 WHERE id = $1

-- name: drop_signals
-- The oldest first.
DELETE FROM signals WHERE id IN (SELECT id FROM signals WHERE at < $1 ORDER BY at, id LIMIT $2)
