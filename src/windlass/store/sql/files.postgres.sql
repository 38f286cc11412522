-- Logs, artifacts, names, progress: the statements that only PostgreSQL runs.

-- name: lost_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.lost} ORDER BY job DESC, attempt DESC LIMIT $1;

-- name: put_artifacts
-- If a name occurs twice in one call, the last one counts.
INSERT INTO artifacts (job, attempt, name, sha256, size, content_type)
SELECT DISTINCT ON (u.job, u.attempt, u.name COLLATE "C")
       u.job, u.attempt, u.name, u.sha256, u.size, u.content_type
FROM unnest($1::text::bigint[], $2::text::integer[], $3::text[], $4::text[],
            $5::text::bigint[], $6::text[])
     WITH ORDINALITY AS u (job, attempt, name, sha256, size, content_type, place)
ORDER BY u.job, u.attempt, u.name COLLATE "C", u.place DESC
ON CONFLICT (job, attempt, name) DO UPDATE SET sha256 = excluded.sha256,
    size = excluded.size, content_type = excluded.content_type;

-- name: referenced
-- By the indexes on digests.
SELECT u.sha256 FROM unnest($1::text[]) AS u (sha256)
WHERE EXISTS (SELECT FROM artifacts a WHERE a.sha256 = u.sha256)
   OR EXISTS (SELECT FROM names n WHERE n.sha256 = u.sha256)
   OR EXISTS (SELECT FROM uploads f WHERE f.sha256 = u.sha256);

-- name: use_uploads
-- Locked in the order of digests; a job that needs one keeps it from being removed.
WITH mine AS (
    SELECT namespace, sha256 FROM uploads WHERE namespace = $1 AND sha256 = ANY ($2::text[])
    ORDER BY sha256 FOR UPDATE
)
UPDATE uploads f SET used_at = $3 FROM mine
WHERE f.namespace = mine.namespace AND f.sha256 = mine.sha256
RETURNING f.namespace, f.sha256, f.size, f.content_type, f.created_by, f.used_at;

-- name: trim_uploads
-- Uploads that no job uses. Skips those in use at this moment.
DELETE FROM uploads f USING (
    SELECT namespace, sha256 FROM uploads u
    WHERE used_at < $1
      AND NOT EXISTS (SELECT FROM artifacts a WHERE a.sha256 = u.sha256 AND a.attempt = 0)
    ORDER BY used_at, namespace, sha256 LIMIT $2 FOR UPDATE SKIP LOCKED
) AS old WHERE f.namespace = old.namespace AND f.sha256 = old.sha256
RETURNING 1;

-- name: put_dynamic
-- The newest one replaces the others.
INSERT INTO dynamic (job, attempt, body)
SELECT u.job, u.attempt, u.body
FROM unnest($1::text::bigint[], $2::text::integer[], $3::bytea[]) AS u (job, attempt, body)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, body = excluded.body;
