-- Shapes, queues and settings: the statements that only SQLite runs.

-- name: insert_shapes
-- Many jobs, few shapes.
INSERT INTO shapes (id, digest, body) VALUES (?, ?, ?);

-- name: newest_ids
-- Each by its primary key.
SELECT
    (SELECT ifnull(max(id), 0) FROM jobs),
    (SELECT ifnull(max(id), 0) FROM workflows),
    (SELECT ifnull(max(seq), 0) FROM events);
