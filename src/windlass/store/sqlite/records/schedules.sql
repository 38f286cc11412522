-- Templates, schedules and reactions.
-- `carray(?)` is an array of integers bound as one parameter; CROSS JOIN keeps it the outer loop,
-- so that rows come in the array's order. An INSERT that ends in VALUES (…) is also executed for
-- many rows at once (bulk.py).

-- name: insert_template
-- The columns of TemplateRow; a version is written once.
INSERT INTO templates (
    namespace, name, version, body, digest, created_at, created_by, removed_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING version;

-- name: newest_template
-- From the end of a span of the primary key.
SELECT namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates WHERE namespace = ? AND name = ? ORDER BY version DESC LIMIT 1;

-- name: template_version
-- By primary key.
SELECT namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates WHERE namespace = ? AND name = ? AND version = ?;

-- name: all_newest_templates
-- A list for people: SQLite takes the other columns from the row of the maximum.
SELECT namespace, name, max(version), body, digest, created_at, created_by, removed_at
FROM templates WHERE removed_at IS NULL AND (?1 IS NULL OR namespace = ?1)
GROUP BY namespace, name ORDER BY namespace, name;

-- name: remove_template
-- Its versions stay known, so that no number is given again.
UPDATE templates SET removed_at = ?3
WHERE namespace = ?1 AND name = ?2 AND removed_at IS NULL RETURNING version;

-- name: insert_schedule
-- The columns of ScheduleRow; a name is taken once.
INSERT INTO schedules (
    id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
    last_slot, body, created_at, created_by, updated_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: schedule
-- By primary key.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
    last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE id = ?;

-- name: schedule_by_name
-- By the unique key.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
    last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE namespace = ? AND name = ?;

-- name: update_schedule
-- All that can change.
UPDATE schedules SET cron = ?2, every_ms = ?3, zone = ?4, overlap = ?5, catch_up = ?6,
    catch_up_limit = ?7, paused = ?8, next_at = ?9, last_slot = ?10, body = ?11, created_at = ?12,
    created_by = ?13, updated_at = ?14
WHERE id = ?1;

-- name: remove_schedule
-- By primary key.
DELETE FROM schedules WHERE id = ?;

-- name: remove_runs_of_schedule
-- By the index on the schedule.
DELETE FROM schedule_runs WHERE schedule = ?;

-- name: schedules_of_namespace
-- A span of the unique key.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
    last_slot, body, created_at, created_by, updated_at
FROM schedules WHERE namespace = ? ORDER BY name;

-- name: all_schedules_by_name
-- A list for people.
SELECT id, namespace, name, cron, every_ms, zone, overlap, catch_up, catch_up_limit, paused, next_at,
    last_slot, body, created_at, created_by, updated_at
FROM schedules ORDER BY namespace, name;

-- name: due_schedules
-- Every second, by an index of those that may run.
SELECT id FROM schedules WHERE paused = 0 AND next_at <= ?
ORDER BY next_at, id LIMIT ?;

-- name: next_due_schedule
-- After each round of the cron loop, from the start of the same index.
SELECT next_at FROM schedules WHERE paused = 0 AND next_at IS NOT NULL ORDER BY next_at LIMIT 1;

-- name: insert_run
-- The columns of RunRow; the unique index refuses a second run of a slot.
INSERT INTO schedule_runs (
    id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: run_of_slot
-- By the unique index: no number is wasted.
SELECT id FROM schedule_runs WHERE schedule = ? AND slot = ?;

-- name: update_run
-- What happens to a run.
UPDATE schedule_runs SET state = ?2, workflow = ?3, changed_at = ?4, reason = ?5 WHERE id = ?1;

-- name: waiting_schedules
-- Every second, by an index of the runs that wait.
SELECT DISTINCT schedule FROM schedule_runs WHERE state = {run.waiting} AND schedule > ?
ORDER BY schedule LIMIT ?;

-- name: open_runs
-- By an index of the runs that have not ended.
SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
FROM schedule_runs WHERE schedule = ? AND state < {run.ended} ORDER BY state, id LIMIT ?;

-- name: runs_of_schedule
-- The newest, from the end of a span of the index.
SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
FROM schedule_runs WHERE schedule = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: trim_runs
-- The oldest of those that have ended, by their index.
DELETE FROM schedule_runs WHERE id IN (
    SELECT id FROM schedule_runs WHERE state >= {run.ended} AND changed_at < ?
    ORDER BY changed_at, id LIMIT ?
);

-- name: insert_reaction
-- The columns of ReactionRow; a reaction fires once for each end of a run.
INSERT INTO reactions (
    id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: same_reaction
-- By the unique key: no number is wasted.
SELECT id FROM reactions WHERE workflow = ? AND run = ? AND occasion = ? AND place = ?;

-- name: ended_reactions
-- By the index of those that are done.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
FROM reactions INDEXED BY reactions_ended
WHERE state > {reaction.pending} AND finished_at >= ?1 ORDER BY finished_at DESC, id DESC LIMIT ?2;

-- name: due_reactions
-- Every second, by an index of those that are pending.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
FROM reactions WHERE state = {reaction.pending} AND next_at <= ? AND (kind = {reaction_kind.webhook}) = ? ORDER BY next_at, id LIMIT ?;

-- name: reaction
-- By primary key.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
FROM reactions WHERE id = ?;

-- name: update_reaction
-- What happens to a reaction.
UPDATE reactions SET state = ?2, tries = ?3, next_at = ?4, finished_at = ?5, result = ?6,
    message = ?7
WHERE id = ?1;

-- name: reactions_of_workflow
-- A span of the unique key; a workflow has few.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
FROM reactions WHERE workflow = ? ORDER BY id;

-- name: trim_reactions
-- The oldest of those that were done or given up, by their index.
DELETE FROM reactions WHERE id IN (
    SELECT id FROM reactions WHERE state > {reaction.pending} AND finished_at < ?
    ORDER BY finished_at, id LIMIT ?
);
