-- Logs, artifacts, names, progress.
-- `carray(?)` is an array of integers bound as one parameter; CROSS JOIN keeps it the outer loop,
-- so that rows come in the array's order. An INSERT that ends in VALUES (…) is also executed for
-- many rows at once (bulk.py).

-- name: log
-- By primary key.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs WHERE job = ? AND attempt = ?;

-- name: put_log
-- The columns of LogRow.
INSERT OR REPLACE INTO logs (job, attempt, state, bytes, gap_from, gap_to)
VALUES (?, ?, ?, ?, ?, ?);

-- name: logs_of_jobs
-- Within a job they come ascending by attempt, as the primary key has them.
SELECT l.job, l.attempt, l.state, l.bytes, l.gap_from, l.gap_to
FROM carray(?) AS wanted CROSS JOIN logs AS l ON l.job = wanted.value;

-- name: lost_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs INDEXED BY logs_lost
WHERE state = {log.lost} ORDER BY job DESC, attempt DESC LIMIT ?1;

-- name: streaming_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.streaming} AND job > ?1 ORDER BY job, attempt LIMIT ?2;

-- name: put_artifacts
-- The columns of ArtifactRow.
INSERT OR REPLACE INTO artifacts (job, attempt, name, sha256, size, content_type)
VALUES (?, ?, ?, ?, ?, ?);

-- name: artifacts_of_jobs
-- Within a job by attempt and name, as the primary key has them.
SELECT a.job, a.attempt, a.name, a.sha256, a.size, a.content_type
FROM carray(?) AS wanted CROSS JOIN artifacts AS a ON a.job = wanted.value;

-- name: put_name
-- The columns of NameRow.
INSERT OR REPLACE INTO names (namespace, name, job, artifact, sha256, set_at)
VALUES (?, ?, ?, ?, ?, ?);

-- name: name
-- By primary key.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE namespace = ? AND name = ?;

-- name: names_of_namespace
-- A span of the primary key.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE namespace = ? ORDER BY name;

-- name: all_names
-- By namespace and name.
SELECT namespace, name, job, artifact, sha256, set_at FROM names ORDER BY namespace, name;

-- name: referenced
-- By the indexes on digests, one digest at a time.
SELECT ?1 WHERE EXISTS (SELECT 1 FROM artifacts WHERE sha256 = ?1)
    OR EXISTS (SELECT 1 FROM names WHERE sha256 = ?1)
    OR EXISTS (SELECT 1 FROM uploads WHERE sha256 = ?1);

-- name: all_uploads
-- By namespace and digest.
SELECT namespace, sha256, size, content_type, created_by, used_at FROM uploads
ORDER BY namespace, sha256;

-- name: uploads_of_namespace
-- A span of the primary key.
SELECT namespace, sha256, size, content_type, created_by, used_at FROM uploads
WHERE namespace = ? ORDER BY sha256;

-- name: put_upload
-- The columns of UploadRow.
INSERT OR REPLACE INTO uploads (namespace, sha256, size, content_type, created_by, used_at)
VALUES (?, ?, ?, ?, ?, ?);

-- name: use_upload
-- By primary key; a job that needs it keeps it from being removed.
UPDATE uploads SET used_at = ?3 WHERE namespace = ?1 AND sha256 = ?2
RETURNING namespace, sha256, size, content_type, created_by, used_at;

-- name: trim_uploads
-- Those that no job has, oldest first, by the index.
DELETE FROM uploads WHERE (namespace, sha256) IN (
    SELECT namespace, sha256 FROM uploads
    WHERE used_at < ?1 AND NOT EXISTS (
        SELECT 1 FROM artifacts WHERE artifacts.sha256 = uploads.sha256 AND attempt = 0
    )
    ORDER BY used_at, namespace, sha256 LIMIT ?2
) RETURNING 1;

-- name: put_progress
-- The columns of Progress; the newest one replaces the others.
INSERT OR REPLACE INTO progress (job, attempt, value, at) VALUES (?, ?, ?, ?);

-- name: progress_of_jobs
-- By primary key.
SELECT p.job, p.attempt, p.value, p.at
FROM carray(?) AS wanted CROSS JOIN progress AS p ON p.job = wanted.value;

-- name: put_dynamic
-- The columns of Dynamic; the newest one replaces the others.
INSERT OR REPLACE INTO dynamic (job, attempt, body) VALUES (?, ?, ?);

-- name: dynamic_of_jobs
-- By primary key.
SELECT d.job, d.attempt, d.body
FROM carray(?) AS wanted CROSS JOIN dynamic AS d ON d.job = wanted.value;
