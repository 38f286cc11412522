-- Logs, artifacts, names, progress: the statements that only SQLite runs.

-- name: lost_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs INDEXED BY logs_lost
WHERE state = {log.lost} ORDER BY job DESC, attempt DESC LIMIT ?1;

-- name: put_artifacts
-- The columns of ArtifactRow.
INSERT OR REPLACE INTO artifacts (job, attempt, name, sha256, size, content_type)
VALUES (?, ?, ?, ?, ?, ?);

-- name: referenced
-- By the indexes on digests.
SELECT wanted.value FROM json_each(?1) AS wanted
WHERE EXISTS (SELECT 1 FROM artifacts WHERE sha256 = wanted.value)
    OR EXISTS (SELECT 1 FROM names WHERE sha256 = wanted.value)
    OR EXISTS (SELECT 1 FROM uploads WHERE sha256 = wanted.value);

-- name: use_uploads
-- By primary key; a job that needs one keeps it from being removed.
UPDATE uploads SET used_at = ?3
WHERE namespace = ?1 AND sha256 IN (SELECT value FROM json_each(?2))
RETURNING namespace, sha256, size, content_type, created_by, used_at;

-- name: trim_uploads
-- Uploads that no job uses, oldest first, by the index.
DELETE FROM uploads WHERE (namespace, sha256) IN (
    SELECT namespace, sha256 FROM uploads
    WHERE used_at < ?1 AND NOT EXISTS (
        SELECT 1 FROM artifacts WHERE artifacts.sha256 = uploads.sha256 AND attempt = 0
    )
    ORDER BY used_at, namespace, sha256 LIMIT ?2
) RETURNING 1;

-- name: put_dynamic
-- The columns of Dynamic; the newest one replaces the others.
INSERT OR REPLACE INTO dynamic (job, attempt, body) VALUES (?, ?, ?);
