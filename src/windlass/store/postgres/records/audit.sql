-- The audit log.

-- name: lock_audit
-- Keeps other writers out until the end of the transaction; readers do not wait.
LOCK TABLE audit IN SHARE ROW EXCLUSIVE MODE

-- name: insert_audit
-- One statement for many rows; the ids rise in the order of the rows.
INSERT INTO audit (
    at, calls, status, token, actor, role, address, action, resource, namespace, code, request, about
)
SELECT at, calls, status, token, actor, role, address, action, resource, namespace, code, request, about
FROM unnest(
    $1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[]
) WITH ORDINALITY AS rows (
    at, calls, status, token, actor, role, address, action, resource, namespace, code, request, about,
    place
)
ORDER BY place

-- name: read_audit
-- The index on the time finds where to begin; ids and times rise nearly together.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit
WHERE id > $1 AND at >= $2
    AND id >= coalesce((SELECT min(id) FROM audit WHERE at >= $2), 0)
    AND ($3::text[] IS NULL OR namespace = ANY ($3::text[]))
ORDER BY id LIMIT $4

-- name: recent_audit
-- Back along the primary key.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2

-- name: trim_audit
-- The oldest first.
DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2
)
