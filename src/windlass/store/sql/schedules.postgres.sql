-- Templates, schedules and reactions: the statements that only PostgreSQL runs.

-- name: all_newest_templates
-- A list for people.
SELECT DISTINCT ON (namespace, name)
       namespace, name, version, body, digest, created_at, created_by, removed_at
FROM templates WHERE removed_at IS NULL AND ($1::text IS NULL OR namespace = $1)
ORDER BY namespace, name, version DESC;

-- name: trim_runs
-- The oldest ended ones, by their index.
DELETE FROM schedule_runs WHERE id = ANY (ARRAY(
    SELECT id FROM schedule_runs WHERE state >= {run.ended} AND changed_at < $1
    ORDER BY changed_at, id LIMIT $2
));

-- name: unstarted_runs
-- By the index of ended runs; reads a bounded number of them.
SELECT * FROM (
    SELECT id, schedule, slot, state, workflow, created_at, changed_at, reason, actor
    FROM schedule_runs WHERE state >= {run.ended} AND changed_at >= $1
    ORDER BY changed_at DESC LIMIT $2
) AS newest WHERE state > {run.ended};

-- name: ended_reactions
-- By the index of finished ones.
SELECT id, workflow, run, occasion, place, kind, state, tries, next_at, created_at, finished_at,
    outcome, result, message
FROM reactions
WHERE state > {reaction.pending} AND finished_at >= $1 ORDER BY finished_at DESC, id DESC LIMIT $2;

-- name: trim_reactions
-- The oldest finished ones, by their index.
DELETE FROM reactions WHERE id = ANY (ARRAY(
    SELECT id FROM reactions WHERE state > {reaction.pending} AND finished_at < $1
    ORDER BY finished_at, id LIMIT $2
));
