-- The audit log.

-- name: read_audit
-- The index on the time finds where to begin; ids and times rise nearly together.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit
WHERE id > $1 AND at >= $2
    AND id >= coalesce((SELECT min(id) FROM audit WHERE at >= $2), 0)
    AND ($3::text[] IS NULL OR namespace = ANY ($3::text[]))
ORDER BY id LIMIT $4;

-- name: recent_audit
-- Back along the primary key.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2;

-- name: trim_audit
-- The oldest first.
DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2
);
