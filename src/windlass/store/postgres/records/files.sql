-- Logs, artifacts, names, progress.

-- name: log
-- By primary key.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs WHERE job = $1 AND attempt = $2

-- name: put_log
-- New or changed; the lease is locked, so nobody else writes it.
INSERT INTO logs (job, attempt, state, bytes, gap_from, gap_to) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (job, attempt) DO UPDATE SET state = excluded.state, bytes = excluded.bytes,
    gap_from = excluded.gap_from, gap_to = excluded.gap_to

-- name: logs_of_jobs
-- Ascending by attempt within each job.
SELECT job, attempt, state, bytes, gap_from, gap_to
FROM logs WHERE job = ANY ($1::text::bigint[]) ORDER BY job, attempt

-- name: lost_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.lost} ORDER BY job DESC, attempt DESC LIMIT $1

-- name: streaming_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.streaming} AND job > $1 ORDER BY job, attempt LIMIT $2

-- name: put_artifacts
-- Of a name that stands twice in one call the last one counts.
INSERT INTO artifacts (job, attempt, name, sha256, size, content_type)
SELECT DISTINCT ON (u.job, u.attempt, u.name COLLATE "C")
       u.job, u.attempt, u.name, u.sha256, u.size, u.content_type
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text[], $4::text[],
            $5::text::bigint[], $6::text[])
     WITH ORDINALITY AS u (job, attempt, name, sha256, size, content_type, place)
ORDER BY u.job, u.attempt, u.name COLLATE "C", u.place DESC
ON CONFLICT (job, attempt, name) DO UPDATE SET sha256 = excluded.sha256,
    size = excluded.size, content_type = excluded.content_type

-- name: artifacts_of_jobs
-- Ascending by attempt and name within each job.
SELECT job, attempt, name, sha256, size, content_type
FROM artifacts WHERE job = ANY ($1::text::bigint[]) ORDER BY job, attempt, name

-- name: put_name
-- New or changed.
INSERT INTO names (namespace, name, job, artifact, sha256, set_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (namespace, name) DO UPDATE SET job = excluded.job, artifact = excluded.artifact,
    sha256 = excluded.sha256, set_at = excluded.set_at

-- name: names
-- All, or those of one namespace.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE $1::text IS NULL OR namespace = $1 ORDER BY namespace, name

-- name: lookup_names
-- By primary key.
SELECT n.namespace, n.name, n.job, n.artifact, n.sha256, n.set_at
FROM unnest($2::text[]) AS u (name) JOIN names n ON n.namespace = $1 AND n.name = u.name

-- name: referenced
-- By the indexes on digests.
SELECT u.sha256 FROM unnest($1::text[]) AS u (sha256)
WHERE EXISTS (SELECT FROM artifacts a WHERE a.sha256 = u.sha256)
   OR EXISTS (SELECT FROM names n WHERE n.sha256 = u.sha256)
   OR EXISTS (SELECT FROM uploads f WHERE f.sha256 = u.sha256)

-- name: uploads
-- All, or those of one namespace.
SELECT namespace, sha256, size, content_type, created_by, used_at FROM uploads
WHERE $1::text IS NULL OR namespace = $1 ORDER BY namespace, sha256

-- name: put_upload
-- New or again.
INSERT INTO uploads (namespace, sha256, size, content_type, created_by, used_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (namespace, sha256) DO UPDATE SET size = excluded.size,
    content_type = excluded.content_type, created_by = excluded.created_by,
    used_at = excluded.used_at

-- name: use_uploads
-- Locked in the order of digests; a job that needs one keeps it from being removed.
WITH mine AS (
    SELECT namespace, sha256 FROM uploads WHERE namespace = $1 AND sha256 = ANY ($2::text[])
    ORDER BY sha256 FOR UPDATE
)
UPDATE uploads f SET used_at = $3 FROM mine
WHERE f.namespace = mine.namespace AND f.sha256 = mine.sha256
RETURNING f.namespace, f.sha256, f.size, f.content_type, f.created_by, f.used_at

-- name: trim_uploads
-- Those that no job has. One that is used at this moment is left alone.
DELETE FROM uploads f USING (
    SELECT namespace, sha256 FROM uploads u
    WHERE used_at < $1
      AND NOT EXISTS (SELECT FROM artifacts a WHERE a.sha256 = u.sha256 AND a.attempt = 0)
    ORDER BY used_at, namespace, sha256 LIMIT $2 FOR UPDATE SKIP LOCKED
) AS old WHERE f.namespace = old.namespace AND f.sha256 = old.sha256
RETURNING 1

-- name: put_progress
-- The newest one replaces the others.
INSERT INTO progress (job, attempt, value, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, value = excluded.value,
    at = excluded.at

-- name: progress_of_jobs
-- By primary key.
SELECT job, attempt, value, at FROM progress
WHERE job = ANY ($1::text::bigint[]) ORDER BY job

-- name: put_dynamic
-- The newest one replaces the others.
INSERT INTO dynamic (job, attempt, body)
SELECT u.job, u.attempt, u.body
FROM unnest($1::text::bigint[], $2::text::integer[], $3::bytea[]) AS u (job, attempt, body)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, body = excluded.body

-- name: dynamic_of_jobs
-- By primary key.
SELECT job, attempt, body FROM dynamic WHERE job = ANY ($1::text::bigint[]) ORDER BY job
