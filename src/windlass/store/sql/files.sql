-- Logs, artifacts, names, progress.

-- name: log
-- By primary key.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs WHERE job = $1 AND attempt = $2;

-- name: put_log
-- New or changed; the lease is locked, so nobody else writes it.
INSERT INTO logs (job, attempt, state, bytes, gap_from, gap_to) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (job, attempt) DO UPDATE SET state = excluded.state, bytes = excluded.bytes,
    gap_from = excluded.gap_from, gap_to = excluded.gap_to;

-- name: logs_of_jobs
-- Ascending by attempt within each job.
SELECT job, attempt, state, bytes, gap_from, gap_to
FROM logs WHERE job = ANY ($1::text::bigint[]) ORDER BY job, attempt;

-- name: streaming_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.streaming} AND job > $1 ORDER BY job, attempt LIMIT $2;

-- name: artifacts_of_jobs
-- Ascending by attempt and name within each job.
SELECT job, attempt, name, sha256, size, content_type
FROM artifacts WHERE job = ANY ($1::text::bigint[]) ORDER BY job, attempt, name;

-- name: put_name
-- New or changed.
INSERT INTO names (namespace, name, job, artifact, sha256, set_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (namespace, name) DO UPDATE SET job = excluded.job, artifact = excluded.artifact,
    sha256 = excluded.sha256, set_at = excluded.set_at;

-- name: all_names
-- By namespace and name.
SELECT namespace, name, job, artifact, sha256, set_at FROM names ORDER BY namespace, name;

-- name: names_of_namespace
-- A span of the primary key.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE namespace = $1 ORDER BY name;

-- name: lookup_names
-- By primary key.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE namespace = $1 AND name = ANY ($2::text[]);

-- name: all_uploads
-- By namespace and digest.
SELECT namespace, sha256, size, content_type, created_by, used_at FROM uploads
ORDER BY namespace, sha256;

-- name: uploads_of_namespace
-- A span of the primary key.
SELECT namespace, sha256, size, content_type, created_by, used_at FROM uploads
WHERE namespace = $1 ORDER BY sha256;

-- name: put_upload
-- New or again.
INSERT INTO uploads (namespace, sha256, size, content_type, created_by, used_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (namespace, sha256) DO UPDATE SET size = excluded.size,
    content_type = excluded.content_type, created_by = excluded.created_by,
    used_at = excluded.used_at;

-- name: put_progress
-- The newest one replaces the others.
INSERT INTO progress (job, attempt, value, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, value = excluded.value,
    at = excluded.at;

-- name: progress_of_jobs
-- By primary key.
SELECT job, attempt, value, at FROM progress
WHERE job = ANY ($1::text::bigint[]) ORDER BY job;

-- name: dynamic_of_jobs
-- By primary key.
SELECT job, attempt, body FROM dynamic WHERE job = ANY ($1::text::bigint[]) ORDER BY job;
