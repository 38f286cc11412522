-- Templates, schedules and reactions.

-- name: insert_template
-- A version is written once; two servers may try concurrently.
INSERT INTO templates (namespace, name, version, body, digest, created_at, created_by, removed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING version;

-- name: newest_template
-- From the end of a range of the primary key.
SELECT namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates WHERE namespace = $1 AND name = $2 ORDER BY version DESC LIMIT 1;

-- name: template_version
-- By primary key.
SELECT namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates WHERE namespace = $1 AND name = $2 AND version = $3;

-- name: remove_template
-- Its versions stay, so that no number is used again.
UPDATE templates SET removed_at = $3 WHERE namespace = $1 AND name = $2 AND removed_at IS NULL
RETURNING version;

-- name: insert_schedule
-- A name is taken once; two servers may try concurrently. No number is wasted.
INSERT INTO schedules (id, namespace, name, cron, every_ms, zone, overlap, catch_up,
                       catch_up_limit, paused, next_at, last_slot, body, created_at, created_by, updated_at)
SELECT nextval('schedule_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
       $15
WHERE NOT EXISTS (SELECT 1 FROM schedules WHERE namespace = $1 AND name = $2)
ON CONFLICT DO NOTHING RETURNING id;

-- name: lock_schedule
-- Schedules are the first rows to be locked.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused,
       next_at, last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE id = $1 FOR NO KEY UPDATE;

-- name: lock_schedule_name
-- The same by name.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused,
       next_at, last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE namespace = $1 AND name = $2 FOR NO KEY UPDATE;

-- name: read_schedule_name
-- Without locks, for reads.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused,
       next_at, last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE namespace = $1 AND name = $2;

-- name: update_schedule
-- `lock_schedule` holds the row.
UPDATE schedules SET cron = $2, every_ms = $3, zone = $4, overlap = $5, catch_up = $6,
       catch_up_limit = $7, paused = $8, next_at = $9, last_slot = $10, body = $11,
       created_at = $12, created_by = $13, updated_at = $14
WHERE id = $1;

-- name: remove_schedule
-- `lock_schedule` holds the row, so no run of it is added meanwhile.
DELETE FROM schedules WHERE id = $1;

-- name: remove_runs_of_schedule
-- Along with it.
DELETE FROM schedule_runs WHERE schedule = $1;

-- name: all_schedules_by_name
-- A list for people.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused,
       next_at, last_slot, body, created_at, created_by, updated_at
FROM schedules ORDER BY namespace, name;

-- name: schedules_of_namespace
-- A list for people.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused,
       next_at, last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE namespace = $1 ORDER BY name;

-- name: due_schedules
-- Every second on every server, by an index of those that may run.
SELECT id FROM schedules WHERE paused = 0 AND next_at <= $1
ORDER BY next_at, id LIMIT $2;

-- name: next_due_schedule
-- After each round of the cron loop, from the start of the same index.
SELECT next_at FROM schedules WHERE paused = 0 AND next_at IS NOT NULL ORDER BY next_at, id LIMIT 1;

-- name: insert_run
-- The unique index refuses a second run of a slot, also when another server is about to add it.
INSERT INTO schedule_runs (id, schedule, slot, state, workflow, created_at, changed_at, reason,
                           actor)
SELECT nextval('run_ids'), $1, $2, $3, $4, $5, $6, $7, $8
WHERE NOT EXISTS (SELECT 1 FROM schedule_runs WHERE schedule = $1 AND slot = $2)
ON CONFLICT DO NOTHING RETURNING id;

-- name: update_run
-- The lock on its schedule covers the row.
UPDATE schedule_runs SET state = $2, workflow = $3, changed_at = $4, reason = $5 WHERE id = $1;

-- name: waiting_schedules
-- Every second on every server, by an index of the runs that wait.
SELECT DISTINCT schedule FROM schedule_runs WHERE state = {run.waiting} AND schedule > $1
ORDER BY schedule LIMIT $2;

-- name: open_runs
-- By an index of the runs that have not ended.
SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
FROM schedule_runs WHERE schedule = $1 AND state < {run.ended} ORDER BY state, id LIMIT $2;

-- name: runs_of_schedule
-- The newest, from the end of a range of the index.
SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
FROM schedule_runs WHERE schedule = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- name: insert_reaction
-- The workflow's lock is held; a reaction fires once for each end of a run.
INSERT INTO reactions (id, workflow, run, occasion, place, kind, state, tries, next_at, created_at,
                       finished_at, outcome, result, message)
SELECT nextval('reaction_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
WHERE NOT EXISTS (
    SELECT 1 FROM reactions WHERE workflow = $1 AND run = $2 AND occasion = $3 AND place = $4
)
ON CONFLICT DO NOTHING RETURNING id;

-- name: due_reactions
-- Every second on every server, by an index of those that are pending.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
       outcome, result, message
FROM reactions WHERE state = {reaction.pending} AND next_at <= $1 AND (kind = {reaction_kind.webhook}) = $2 ORDER BY next_at, id LIMIT $3;

-- name: lock_reaction
-- Reactions are locked before jobs and workflows.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
       outcome, result, message
FROM reactions WHERE id = $1 FOR NO KEY UPDATE;

-- name: read_reaction
-- Without locks, for reads.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
       outcome, result, message
FROM reactions WHERE id = $1;

-- name: update_reaction
-- `lock_reaction` holds the row.
UPDATE reactions SET state = $2, tries = $3, next_at = $4, finished_at = $5, result = $6,
       message = $7
WHERE id = $1;

-- name: reactions_of_workflow
-- A range of the unique key; a workflow has few.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
       outcome, result, message
FROM reactions WHERE workflow = $1 ORDER BY id;
