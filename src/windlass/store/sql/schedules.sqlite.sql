-- Templates, schedules and reactions: the statements that only SQLite runs.

-- name: all_newest_templates
-- A list for people: SQLite takes the other columns from the row of the maximum.
SELECT namespace, name, max(version), body, digest, created_at, created_by, removed_at
FROM templates WHERE removed_at IS NULL AND (?1 IS NULL OR namespace = ?1)
GROUP BY namespace, name ORDER BY namespace, name;

-- name: trim_runs
-- The oldest ended ones, by their index.
DELETE FROM schedule_runs WHERE id IN (
    SELECT id FROM schedule_runs WHERE state >= {run.ended} AND changed_at < ?
    ORDER BY changed_at, id LIMIT ?
);

-- name: unstarted_runs
-- By the index of ended runs; reads a bounded number of them.
SELECT * FROM (
    SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
    FROM schedule_runs INDEXED BY schedule_runs_ended
    WHERE state >= {run.ended} AND changed_at >= ?1
    ORDER BY changed_at DESC LIMIT ?2
) WHERE state > {run.ended};

-- name: ended_reactions
-- By the index of finished ones.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
FROM reactions INDEXED BY reactions_ended
WHERE state > {reaction.pending} AND finished_at >= ?1 ORDER BY finished_at DESC, id DESC LIMIT ?2;

-- name: trim_reactions
-- The oldest finished ones, by their index.
DELETE FROM reactions WHERE id IN (
    SELECT id FROM reactions WHERE state > {reaction.pending} AND finished_at < ?
    ORDER BY finished_at, id LIMIT ?
);
