-- Steps of jobs, and signals.

-- name: find_step
-- By primary key.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE job = $1 AND key = $2;

-- name: lock_step
-- By primary key; waits for a transaction that ends the step meanwhile.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE job = $1 AND key = $2 FOR UPDATE;

-- name: count_steps
-- By a range of the primary key.
SELECT count(*) FROM steps WHERE job = $1;

-- name: next_signal
-- In the order of their numbers, by the index on the name.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals
WHERE namespace = $1 AND name = $2 AND id > $3 AND at >= $4 AND at <= $5
ORDER BY id LIMIT 1;

-- name: signal_of_key
-- By its unique key.
SELECT id, namespace, name, key, at, is_open, actor, payload FROM signals
WHERE namespace = $1 AND name = $2 AND key = $3;

-- name: last_signal
-- By the index on the name.
SELECT coalesce(max(id), 0) FROM signals WHERE namespace = $1 AND name = $2;

-- name: count_signals
-- No further than the bound.
SELECT count(*) FROM (SELECT 1 FROM signals WHERE namespace = $1 LIMIT $2) AS holding;

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
    value = excluded.value;

-- name: pending_steps
-- The lock waits for a signal that is being sent.
SELECT job, key, kind, state, attempt, asked_at, until, ended_at, namespace, name, signal, actor, body, value
FROM steps WHERE job = ANY ($1::text::bigint[]) AND state = {step_state.pending}
ORDER BY job, key FOR UPDATE;

-- name: insert_signal
-- The columns of SignalRow; the number is drawn here, while the name is locked.
INSERT INTO signals (id, namespace, name, key, at, is_open, actor, payload)
SELECT nextval('signal_ids'), $1, $2, $3, $4, $5, $6, $7
RETURNING id;

-- name: close_signal
-- By primary key.
UPDATE signals SET is_open = 0 WHERE id = $1;

-- name: drop_signals
-- The oldest first.
DELETE FROM signals WHERE id IN (SELECT id FROM signals WHERE at < $1 ORDER BY at, id LIMIT $2);
