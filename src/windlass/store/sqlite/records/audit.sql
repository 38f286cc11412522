-- The audit log.

-- name: insert_audit
-- The columns of AuditRow.
INSERT INTO audit (
    id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_audit
-- The index on the time finds where to begin; ids and times rise nearly together. The third
-- parameter has one namespace a line, and an empty line at both ends.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit
WHERE id > ?1 AND at >= ?2
    AND id >= coalesce((SELECT min(id) FROM audit WHERE at >= ?2), 0)
    AND (?3 IS NULL OR instr(?3, char(10) || namespace || char(10)))
ORDER BY id LIMIT ?4;

-- name: recent_audit
-- Back along the primary key.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: trim_audit
-- The oldest first.
DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE at < ?1 ORDER BY at, id LIMIT ?2
);
